// What a machine was measured to do, kept in a file: the planner's simulator tells time by it.
//
// `octavo probe` measures and stores it. The machine part prices any model from its shapes; a model part, measured on
// the model itself, is more exact and is used where there is one.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "octavo/probe.h"
#include "octavo/result.h"

namespace octavo {

/// A matrix product of `rows` activations: nanoseconds per weight (output x input), on all threads.
struct GemmCost {
  std::string format;
  std::vector<std::uint32_t> rows;  // ascending
  std::vector<double> ns_per_weight;
};

/// Attention on all threads: nanoseconds per key, KV head and 64 dimensions.
struct AttentionCost {
  std::string kv_type;
  std::uint32_t head_dim = 0, group = 0;  // query heads per KV head
  double single_key_ns = 0;               // read by one token alone (decode)
  double chunk_key_ns = 0;                // per token of a full tile (prefill)
};

/// Whole steps of a model, measured: nanoseconds.
struct StepCurve {
  std::vector<std::uint32_t> tokens;  // ascending, of one prompt at position 0, without logits
  std::vector<double> ns;
  std::vector<std::uint32_t> logit_rows;  // ascending
  std::vector<double> logit_ns;           // added by so many rows of logits, sampling included
  double single_key_ns = 0;               // a key read by a token alone, mean over the layers
  double chunk_key_ns = 0;                // a key read by a token of a full tile
  double row_ns = 0;                      // each further row of a step
  double step_ns = 0;                     // scheduling and delivery, of a step
  double copy_block_ns = 0;               // a whole KV block, memory to memory
};

struct ModelProfile {
  std::string fingerprint;  // EngineReport::fingerprint
  std::string name;
  StepCurve steps;
};

struct MachineProfile {
  std::string cpu, isa;
  std::uint32_t threads = 0;
  std::string measured;  // "2026-12-01 02:10 UTC"
  ProbeReport peaks;
  std::vector<GemmCost> gemm;
  std::vector<AttentionCost> attention;
  std::vector<ModelProfile> models;
};

/// Where this machine's profile is kept: in the cache folder, one file per processor and thread count.
[[nodiscard]] std::string profile_path();
/// Errors name the file and the field. kNotFound: there is none yet.
[[nodiscard]] Result<MachineProfile> load_profile(const std::string& path);
[[nodiscard]] Result<> save_profile(const std::string& path, const MachineProfile& profile);
/// SHA-256 of the file's canonical content, 12 hex digits: names the profile in reports.
[[nodiscard]] std::string profile_hash(const MachineProfile& profile);

}  // namespace octavo
