#include "sample/validate.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace octavo {
namespace {

constexpr std::uint32_t kMaxChoices = 128;
constexpr std::uint32_t kMaxLogprobs = 1024;
constexpr std::size_t kMaxStops = 64;
constexpr std::size_t kMaxStopBytes = 4096;

Error out_of_range(const char* field, const std::string& value, const std::string& limit) {
  return {ErrorCode::kInvalidArgument, fmt::format("{} is {}, but it must be {}", field, value, limit), field};
}

Result<> between(const char* field, double value, double low, double high) {
  if (value >= low && value <= high) return Ok{};  // false for NaN
  return out_of_range(field, fmt::format("{}", value), fmt::format("between {} and {}", low, high));
}

Result<> check_token(const char* field, TokenId id, std::uint32_t vocab_size) {
  if (id.value >= 0 && static_cast<std::uint32_t>(id.value) < vocab_size) return Ok{};
  return out_of_range(field, fmt::format("token id {}", id.value),
                      fmt::format("below the vocabulary of {}", vocab_size));
}

}  // namespace

Result<> validate(const SamplingParams& p, std::uint32_t vocab_size) {
  OCTAVO_CHECK_OK(between("n", p.n, 1, kMaxChoices));
  OCTAVO_CHECK_OK(between("temperature", p.temperature, 0, 100));
  if (!(p.top_p > 0 && p.top_p <= 1)) {
    return out_of_range("top_p", fmt::format("{}", p.top_p), "above 0 and at most 1");
  }
  if (p.top_k < -1) return out_of_range("top_k", fmt::format("{}", p.top_k), "-1 or 0 for off, or at least 1");
  OCTAVO_CHECK_OK(between("min_p", p.min_p, 0, 1));
  if (!(p.repetition_penalty > 0 && p.repetition_penalty <= 100)) {
    return out_of_range("repetition_penalty", fmt::format("{}", p.repetition_penalty), "above 0 and at most 100");
  }
  OCTAVO_CHECK_OK(between("presence_penalty", p.presence_penalty, -2, 2));
  OCTAVO_CHECK_OK(between("frequency_penalty", p.frequency_penalty, -2, 2));
  for (const auto& [id, bias] : p.logit_bias) {
    OCTAVO_CHECK_OK(check_token("logit_bias", id, vocab_size));
    OCTAVO_CHECK_OK(between("logit_bias", bias, -100, 100));
  }
  for (const TokenId id : p.stop_token_ids) OCTAVO_CHECK_OK(check_token("stop_token_ids", id, vocab_size));
  OCTAVO_CHECK_OK(between("stop", static_cast<double>(p.stop.size()), 0, kMaxStops));
  for (const std::string& stop : p.stop) {
    if (stop.empty() || stop.size() > kMaxStopBytes) {
      return out_of_range("stop", fmt::format("a string of {} bytes", stop.size()),
                          fmt::format("between 1 and {} bytes long", kMaxStopBytes));
    }
  }
  if (p.min_tokens > p.max_tokens) {
    return out_of_range("min_tokens", fmt::format("{}", p.min_tokens),
                        fmt::format("at most max_tokens ({})", p.max_tokens));
  }
  if (p.logprobs) OCTAVO_CHECK_OK(between("logprobs", *p.logprobs, 0, kMaxLogprobs));
  if (p.prompt_logprobs) OCTAVO_CHECK_OK(between("prompt_logprobs", *p.prompt_logprobs, 0, kMaxLogprobs));
  return Ok{};
}

}  // namespace octavo
