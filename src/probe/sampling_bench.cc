#include <array>
#include <utility>

#include "probe/kernel_parts.h"
#include "sample/sampler.h"

namespace octavo {
namespace {

/// A row of a vocabulary: noise, and unless `flat` a few dozen tokens that stand out, as after any real prompt.
std::vector<float> logits_row(std::uint32_t vocab, bool flat) {
  std::vector<float> row(vocab);
  std::uint64_t random = 11;
  const auto uniform = [&] {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<float>(random >> 40U) * 0x1p-24F;
  };
  for (float& x : row) {
    x = -6;
    for (int i = 0; i < 12; ++i) x += uniform();  // close to normal
    x *= flat ? 2.5F : 1.5F;
  }
  for (std::uint32_t i = 0; i < 48 && !flat; ++i) {
    row[static_cast<std::uint32_t>(uniform() * static_cast<float>(vocab))] = 20.0F - 0.25F * static_cast<float>(i);
  }
  return row;
}

struct Case {
  const char* what;
  bool flat;
  SamplingParams params;
};

std::array<Case, kSamplingCases> cases() {
  const auto with = [](auto set) {
    SamplingParams params;
    set(params);
    return params;
  };
  return {{{"greedy", false, with([](auto& p) { p.temperature = 0; })},
           {"no filter", false, {}},
           {"top-k 40", false, with([](auto& p) { p.top_k = 40; })},
           {"top-p 0.95", false, with([](auto& p) { p.top_p = 0.95F; })},
           {"min-p 0.05", false, with([](auto& p) { p.min_p = 0.05F; })},
           {"top-k 40, top-p 0.95", false, with([](auto& p) { p.top_k = 40, p.top_p = 0.95F; })},
           {"repetition penalty, greedy", false, with([](auto& p) { p.temperature = 0, p.repetition_penalty = 1.1F; })},
           {"top-k 40", true, with([](auto& p) { p.top_k = 40; })},
           {"top-p 0.95", true, with([](auto& p) { p.top_p = 0.95F; })}}};
}

}  // namespace

std::vector<SamplingRow> KernelBench::sampling() {
  std::vector<SamplingRow> out;
  if (config_.vocab == 0) return out;
  Sampler sampler(kernels_, config_.vocab);
  std::vector<TokenId> prompt;  // what penalties look at
  for (std::uint32_t i = 0; i < 512; ++i) {
    prompt.push_back(TokenId{static_cast<std::int32_t>(i * 2654435761ULL % config_.vocab)});
  }
  for (const Case& c : cases()) {
    tell(c.what);
    const std::vector<float> row = logits_row(config_.vocab, c.flat);
    std::vector<float> logits = row;
    std::uint32_t position = 0;
    const auto sample = [&] {
      const SampleInput input{c.params, 1, 0, Pos{position++}, prompt, {}, {}, logits};
      volatile std::int32_t token = sampler.sample(input, nullptr).value_or(TokenId{-1}).value;
      (void)token;
      for (const TokenId id : prompt) {  // the sampler edits what it penalises
        logits[static_cast<std::size_t>(id.value)] = row[static_cast<std::size_t>(id.value)];
      }
    };
    const Spread seconds = time_bursts(0.1, 0.002, sample);
    out.push_back({c.what, c.flat, 1e6 * seconds.min, 1e6 * seconds.median});
  }
  return out;
}

}  // namespace octavo
