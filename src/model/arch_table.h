// The architectures, one row of data each. No other place tests a model's name.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "model/checkpoint.h"
#include "model/spec.h"

namespace octavo {

/// Names of one tensor in both containers; "{}" stands for the layer.
struct TensorName {
  Role role;
  const char* gguf;
  const char* hf;
};

/// Which layers attend within a window if the file gives its size but no list of layers.
enum class WindowRule : std::uint8_t {
  kEveryLayer,   // all
  kUpperLayers,  // HF: from max_window_layers on, and only if use_sliding_window is true; GGUF: none
  kPeriodic,     // all but every window_period-th
};

struct ArchRow {
  const char* gguf_name;                  // general.architecture, and the prefix of its keys
  std::span<const char* const> hf_types;  // model_type in config.json
  std::span<const TensorName> ffn_norms;  // the norms around the FFN; all other names are shared by the rows
  FfnKind ffn = FfnKind::kSwiGlu;
  NormPlan norms = {};
  bool qkv_bias = false;         // always; others have one if the file has the tensors
  bool scale_embedding = false;  // by sqrt(width) in f32
  float attn_soft_cap = 0, final_soft_cap = 0;

  WindowRule window_rule = WindowRule::kEveryLayer;
  std::uint32_t window_period = 0;
  std::uint32_t window = 0;   // if the file says nothing
  float local_rope_base = 0;  // of layers with a window; 0: the same rope. Never scaled.

  // q.k is scaled by 1 / sqrt(head_dim); by 1 / sqrt(width / heads) where head_dim is this (the 27B sizes of Gemma).
  std::uint32_t width_scaled_head_dim = 0;

  bool gguf_interleaved_qk = false;  // q and k rows are stored for interleaved rope
  bool hf_gain_minus_one = false;    // norms are stored as gain - 1
  bool hf_tied = false;              // if config.json says nothing
  std::uint32_t hf_head_dim = 0;     // likewise; 0: width / heads
  float hf_rope_base = 10000;        // likewise
};

[[nodiscard]] const ArchRow* find_gguf_arch(std::string_view name);
[[nodiscard]] const ArchRow* find_hf_arch(std::string_view model_type);
/// nullptr: this architecture has no such tensor.
[[nodiscard]] const TensorName* find_tensor_name(const ArchRow& arch, Role role);
[[nodiscard]] std::string supported_gguf_archs();  // "gemma2, gemma3, …" for messages
[[nodiscard]] std::string supported_hf_types();

}  // namespace octavo
