// What a machine was measured to do, kept in a file: the planner's simulator tells time by it.
//
// `octavo probe` measures and stores it. The machine part prices any model from its shapes; a model part, measured on
// the model itself, is more exact and is used where there is one.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "octavo/result.h"

namespace octavo {

/// A matrix product of `rows` activations: nanoseconds per weight (output x input), on all threads.
struct GemmCost {
  std::string format;
  std::vector<std::uint32_t> rows;  // ascending
  std::vector<double> ns_per_weight;
};

/// Attention on all threads: nanoseconds for one KV head and its group of query heads to read a key and its value.
struct AttentionCost {
  std::string kv_type;
  std::uint32_t head_dim = 0, group = 0;       // query heads per KV head
  double single_key_ns = 0, chunk_key_ns = 0;  // by one token alone (decode); by a token of a full tile (prefill)
};

/// What a step of a model takes, in nanoseconds. Keys are counted as means over the layers.
struct StepCurve {
  std::vector<std::uint32_t> tokens;  // ascending
  std::vector<double> ns;             // of so many tokens through the weights, head and attention apart
  std::vector<std::uint32_t> logit_rows;
  std::vector<double> logit_ns;                // added by so many rows of logits, sampling included
  double single_key_ns = 0, chunk_key_ns = 0;  // a key read by a token alone, by a token of a full tile
  double row_ns = 0, step_ns = 0;              // scheduling and delivery: by each row, and of the step as such
  double copy_byte_ns = 0;                     // of KV blocks that are copied, saved or loaded
};

/// One step as it was timed: the runs of consecutive positions it computed, and how long that took.
struct TimedStep {
  struct Row {
    std::uint32_t first_position = 0, tokens = 1, logits = 1;
  };
  std::vector<Row> rows;
  double run_ns = 0, step_ns = 0;  // of the executor alone; with scheduling and delivery
};

/// A model's curve from steps of its own. Needed are steps of one row at position 0, in several lengths; steps of
/// several rows of one token tell what rows of logits cost, the same deep in a sequence what keys do. `windows`: of
/// each layer, 0: full. `head_share`: of the weights that one token with logits reads, those of the output head.
[[nodiscard]] Result<StepCurve> fit_step_curve(std::span<const std::uint32_t> windows, double head_share,
                                               std::span<const TimedStep> steps);

/// Measured on the model itself.
struct ModelProfile {
  std::string name;                 // as the file says
  std::uint64_t weights_bytes = 0;  // of the tensors in the file
  std::string numerics, kv_type;    // "int8", "bf16"
  StepCurve steps;
};

struct MachineProfile {
  std::string cpu, isa;
  std::uint32_t threads = 0;
  std::string measured;  // "2026-12-01 02:10 UTC"
  double read_gbytes = 0, empty_region_us = 0, joined_region_us = 0;
  double sample_ns = 0;  // a row of 128,256 logits
  std::vector<GemmCost> gemm;
  std::vector<AttentionCost> attention;
  std::vector<ModelProfile> models;
};

/// Where the profile of this machine with so many threads (0: the cores this process may use) is kept: in the cache
/// folder, see docs/cli.md. Empty: there is none.
[[nodiscard]] std::string profile_path(std::uint32_t threads = 0);
/// Errors name the file and the field. kNotFound: there is none yet.
[[nodiscard]] Result<MachineProfile> load_profile(const std::string& path);
[[nodiscard]] Result<> save_profile(const std::string& path, const MachineProfile& profile);
/// xxHash64 of all fields, 16 hex digits: names the profile in reports.
[[nodiscard]] std::string profile_hash(const MachineProfile& profile);

}  // namespace octavo
