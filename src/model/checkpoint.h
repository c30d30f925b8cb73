// A model file opened: its spec, and its tensors in one canonical form, whatever the container.
//
// Canonical: matrices are [rows = outputs, cols = inputs], row-major blocks of `type`; q and k rows (and biases) are in
// half-split rope order (llama-arch GGUF stores them permuted: undone here); norm gains are the factors themselves
// (HF stores Gemma's as gain - 1: undone here). Bytes live as long as the Checkpoint.
// Threads: immutable after opening.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "model/spec.h"
#include "octavo/model_info.h"
#include "octavo/result.h"
#include "tensor/tensor_type.h"

namespace octavo {

/// What a tensor is for. Per layer from kAttnNorm on.
enum class Role : std::uint8_t {
  kTokenEmbedding,
  kOutputNorm,
  kOutput,
  kAttnNorm,
  kQ,
  kK,
  kV,
  kQBias,
  kKBias,
  kVBias,
  kQNorm,
  kKNorm,
  kAttnOutput,
  kPostAttnNorm,
  kFfnNorm,
  kGate,
  kUp,
  kDown,
  kPostFfnNorm,
};

struct SourceTensor {
  TensorType type = TensorType::kF32;
  std::uint32_t rows = 0, cols = 0;  // a vector has rows = 1
  const std::byte* data = nullptr;   // may be unaligned
};

class Checkpoint {
 public:
  virtual ~Checkpoint() = default;
  [[nodiscard]] virtual const ModelSpec& spec() const = 0;
  [[nodiscard]] virtual const ModelInfo& info() const = 0;  // all but the tokenizer part
  /// Sizes were checked against the spec on opening. A role that the spec does not have gives nullopt.
  [[nodiscard]] virtual std::optional<SourceTensor> tensor(Role role, std::uint32_t layer = 0) const = 0;
  /// SHA-256 (hex) over header, tensor table and samples of every tensor: identifies the weights.
  [[nodiscard]] virtual const std::string& fingerprint() const = 0;
};

}  // namespace octavo
