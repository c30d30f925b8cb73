// Request lengths as a published trace has them, drawn from its quantiles.
//
// The curve between two quantiles is interpolated between logarithms, as lengths spread over decades. Drawing from the
// curve keeps both humps of a two-humped trace, which a fitted log-normal would smooth away.
#pragma once
#include <cstdint>
#include <span>

namespace octavo {

struct Quantile {
  double share = 0;   // of requests that are at most so long, 0 to 1
  double tokens = 0;  // >= 1
};

/// SplitMix64: the same sequence of a seed on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  double uniform() { return static_cast<double>(next() >> 11U) * 0x1.0p-53; }  // [0, 1)

 private:
  std::uint64_t state_;
};

/// The length that `share` of all requests do not exceed. `curve` ascends in both fields, from share 0 to share 1.
[[nodiscard]] std::uint32_t length_at(std::span<const Quantile> curve, double share);

/// Azure LLM inference trace 2023, conversation: 19,366 requests. The shortest are not published; one token is assumed.
inline constexpr Quantile kAzureConversationPrompt[] = {{0, 1},      {.05, 181},  {.25, 396},  {.5, 1020}, {.75, 1189},
                                                        {.90, 2735}, {.95, 4083}, {.99, 4142}, {1, 14050}};
inline constexpr Quantile kAzureConversationOutput[] = {{0, 1},     {.05, 41},  {.25, 85},  {.5, 129}, {.75, 395},
                                                        {.90, 424}, {.95, 451}, {.99, 601}, {1, 1000}};

struct RequestLength {
  std::uint32_t prompt = 0, output = 0;
};

[[nodiscard]] inline RequestLength draw_azure_conversation(Random& random) {
  const std::uint32_t prompt = length_at(kAzureConversationPrompt, random.uniform());
  return {prompt, length_at(kAzureConversationOutput, random.uniform())};
}

}  // namespace octavo
