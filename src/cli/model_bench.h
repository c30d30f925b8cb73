// Speed of a model on this machine, test by test, beside what the probed machine could do at most.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "octavo/engine.h"
#include "octavo/probe.h"
#include "octavo/result.h"

namespace octavo {

/// Prefill: `tokens` prompt tokens after `depth` cached ones. Decode: `tokens` generated ones after a prompt of
/// `depth`.
struct ModelTest {
  enum class Kind : std::uint8_t { kPrefill, kDecode };
  Kind kind = Kind::kPrefill;
  std::uint32_t tokens = 512, depth = 0, streams = 1;

  [[nodiscard]] const char* name() const { return kind == Kind::kPrefill ? "prefill" : "decode"; }
};

/// Tokens per second are of all streams together.
struct ModelRow {
  ModelTest test;
  double best = 0, median = 0;
  double limit = 0;                    // what the peaks allow: the lower of arithmetic and reading
  double gops = 0, compute_share = 0;  // of the best run: operations, and their time at the peaks as a part of it
  double gbytes = 0, read_share = 0;   // weights and KV read, and their time at the bandwidth probed for them
  ReadRate bandwidth;                  // at the test's working set
  std::uint64_t hash = 0;              // of all output tokens
};

/// Runs the tests that the engine has room for; one line on stderr for each that it has not. `numerics`: how
/// the weights were loaded. Refuses a prefill at depth without a prefix cache.
[[nodiscard]] Result<std::vector<ModelRow>> bench_model(Engine& engine, const ProbeReport& peaks, Numerics numerics,
                                                        const std::vector<ModelTest>& tests, std::uint32_t repeats);

}  // namespace octavo
