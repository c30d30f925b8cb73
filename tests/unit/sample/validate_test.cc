// Parameters outside their range are refused by name; the borders are allowed.
#include "sample/validate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace octavo {
namespace {

constexpr std::uint32_t kVocab = 100;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Case {
  const char* field;
  void (*set)(SamplingParams&);
};

TEST(Validate, RefusesWhatIsOutside) {
  const Case cases[] = {
      {"n", [](SamplingParams& p) { p.n = 0; }},
      {"n", [](SamplingParams& p) { p.n = 129; }},
      {"temperature", [](SamplingParams& p) { p.temperature = -0.1F; }},
      {"temperature", [](SamplingParams& p) { p.temperature = kNan; }},
      {"temperature", [](SamplingParams& p) { p.temperature = kInfinity; }},
      {"top_p", [](SamplingParams& p) { p.top_p = 0; }},
      {"top_p", [](SamplingParams& p) { p.top_p = 1.01F; }},
      {"top_p", [](SamplingParams& p) { p.top_p = kNan; }},
      {"top_k", [](SamplingParams& p) { p.top_k = -2; }},
      {"min_p", [](SamplingParams& p) { p.min_p = 1.5F; }},
      {"min_p", [](SamplingParams& p) { p.min_p = kNan; }},
      {"repetition_penalty", [](SamplingParams& p) { p.repetition_penalty = 0; }},
      {"repetition_penalty", [](SamplingParams& p) { p.repetition_penalty = kNan; }},
      {"repetition_penalty", [](SamplingParams& p) { p.repetition_penalty = kInfinity; }},
      {"presence_penalty", [](SamplingParams& p) { p.presence_penalty = 2.1F; }},
      {"frequency_penalty", [](SamplingParams& p) { p.frequency_penalty = kNan; }},
      {"logit_bias",
       [](SamplingParams& p) {
         p.logit_bias = {{TokenId{100}, 1.0F}};
       }},
      {"logit_bias",
       [](SamplingParams& p) {
         p.logit_bias = {{TokenId{-1}, 1.0F}};
       }},
      {"logit_bias",
       [](SamplingParams& p) {
         p.logit_bias = {{TokenId{1}, 101.0F}};
       }},
      {"logit_bias",
       [](SamplingParams& p) {
         p.logit_bias = {{TokenId{1}, kNan}};
       }},
      {"stop_token_ids", [](SamplingParams& p) { p.stop_token_ids = {TokenId{100}}; }},
      {"stop", [](SamplingParams& p) { p.stop = {""}; }},
      {"min_tokens", [](SamplingParams& p) { p.min_tokens = p.max_tokens + 1; }},
      {"logprobs", [](SamplingParams& p) { p.logprobs = 1'000'000; }},
      {"prompt_logprobs", [](SamplingParams& p) { p.prompt_logprobs = 1'000'000; }},
  };
  for (const Case& one : cases) {
    SamplingParams params;
    one.set(params);
    const auto result = validate(params, kVocab);
    ASSERT_FALSE(result.ok()) << one.field;
    EXPECT_EQ(result.error().field, one.field);
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(result.error().message.find(one.field), std::string::npos) << result.error().message;
  }
}

TEST(Validate, AllowsTheBorders) {
  SamplingParams params;
  EXPECT_TRUE(validate(params, kVocab).ok());
  params.n = 128, params.temperature = 0, params.top_p = 1, params.top_k = -1, params.min_p = 1;
  params.presence_penalty = -2, params.frequency_penalty = 2, params.min_tokens = params.max_tokens;
  params.logit_bias = {{TokenId{99}, -100.0F}};
  params.stop_token_ids = {TokenId{0}};
  EXPECT_TRUE(validate(params, kVocab).ok());
}

}  // namespace
}  // namespace octavo
