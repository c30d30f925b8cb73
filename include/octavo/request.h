// What a client asks for and what comes back: plain structs, documented per field.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "octavo/ids.h"
#include "octavo/result.h"

namespace octavo {

struct SamplingParams {
  std::uint32_t n = 1;                                // choices, 1..128
  std::uint32_t max_tokens = 16;                      // 0 is allowed together with prompt_logprobs: score only
  std::uint32_t min_tokens = 0;                       // no end-of-generation or stop before that many
  float temperature = 1.0F;                           // 0: greedy; 0..100
  float top_p = 1.0F;                                 // (0, 1]
  std::int32_t top_k = 0;                             // 0 or -1: off
  float min_p = 0.0F;                                 // [0, 1]
  float repetition_penalty = 1.0F;                    // > 0; over prompt and output
  float presence_penalty = 0.0F;                      // -2..2; over the output
  float frequency_penalty = 0.0F;                     // -2..2; over the output
  std::vector<std::pair<TokenId, float>> logit_bias;  // -100..100 each
  std::optional<std::uint64_t> seed;                  // default: drawn by the engine
  std::vector<std::string> stop;                      // stop strings; found across token borders
  std::vector<TokenId> stop_token_ids;
  bool include_stop_str_in_output = false;
  bool ignore_eos = false;
  bool skip_special_tokens = true;
  std::optional<std::uint32_t> logprobs;         // alternatives per generated token; 0: the sampled one only
  std::optional<std::uint32_t> prompt_logprobs;  // the same for every prompt token
};

inline constexpr std::size_t kMaxCacheSaltBytes = 256;
inline constexpr std::chrono::milliseconds kMaxDeadline{1'000'000'000};  // 11 days

struct Request {
  std::vector<TokenId> prompt;  // [1..max_model_len)
  SamplingParams params;
  std::int32_t priority = 0;                          // lower is served first (policy priority)
  std::string cache_salt;                             // only requests of equal salt share cached prefixes
  std::optional<std::chrono::milliseconds> deadline;  // from arrival; then it ends with kError and ErrorCode::kDeadline
};

enum class FinishReason : std::uint8_t { kStop, kLength, kAbort, kError };

/// Raw log-probability (before bias, penalties and temperature) of a token, and the k best of its position.
struct TokenLogprob {
  TokenId id;
  std::optional<float> logprob;                // none for the first prompt token
  std::vector<std::pair<TokenId, float>> top;  // descending, ties by lowest id
};

struct Usage {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;  // of this choice so far
  std::uint32_t cached_tokens = 0;      // of the prompt, taken from the prefix cache
};

/// Moments on the steady clock; zero until reached.
struct Timings {
  std::chrono::microseconds arrival{}, scheduled{}, first_token{}, last_token{};
  std::uint32_t preemptions = 0;
};

/// One piece of one choice of a request. Events of a choice arrive in order.
struct OutputEvent {
  RequestId request;
  std::uint32_t choice = 0;
  std::string text;                           // new text; text once sent never changes
  std::vector<TokenId> tokens;                // sampled since the last event of this choice
  std::vector<TokenLogprob> logprobs;         // [tokens], if asked for
  std::vector<TokenLogprob> prompt_logprobs;  // [prompt], once, in the first event of choice 0, if asked for
  std::optional<FinishReason> finish;         // set in the last event of this choice
  std::string stop_reason;                    // the stop string that was found, if one was
  std::optional<TokenId> stop_token;          // the stop token that was sampled, if one was (eos included)
  std::optional<Error> error;                 // with kError
  Usage usage;
  Timings timings;
  bool last = false;  // nothing more will come for this request
};

/// Called on the engine's thread, one event at a time; must not block and must not call back into the engine.
using Sink = std::function<void(OutputEvent&&)>;

/// A finished choice, for those who wait for the whole.
struct Completion {
  std::uint32_t choice = 0;
  std::string text;
  std::vector<TokenId> tokens;
  std::vector<TokenLogprob> logprobs, prompt_logprobs;
  FinishReason finish = FinishReason::kStop;
  std::string stop_reason;
  Usage usage;
  Timings timings;
};

}  // namespace octavo
