// The bodies of /v1/completions and /v1/chat/completions as plain structs. Pure functions of the body and the
// vocabulary's size.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "octavo/request.h"
#include "octavo/result.h"
#include "server/json.h"

namespace octavo {

/// What both endpoints share.
struct GenerationCall {
  std::string model;  // as asked; empty: not said
  SamplingParams params;
  std::optional<std::uint32_t> max_tokens;  // none: the endpoint's default
  std::int32_t priority = 0;
  std::string cache_salt;
  std::optional<std::chrono::milliseconds> deadline;
  bool stream = false;
  bool include_usage = false;     // a last chunk with the usage
  bool continuous_usage = false;  // and the usage so far in every chunk
  bool add_special_tokens = true;
  bool return_token_ids = false;
  bool tokens_as_ids = false;  // "token_id:42" instead of text in logprobs
};

using PromptInput = std::variant<std::string, std::vector<TokenId>>;

struct CompletionCall : GenerationCall {
  std::vector<PromptInput> prompts;  // at least one
  bool echo = false;
};

struct ChatCall : GenerationCall {
  Json messages;         // a list of objects; content is a string or null
  Json tools;            // a list or null
  Json template_kwargs;  // an object: more variables for the template
  bool add_generation_prompt = true;
  bool continue_final_message = false;
};

[[nodiscard]] Result<CompletionCall> parse_completion(const Json& body, std::uint32_t vocab_size);
[[nodiscard]] Result<ChatCall> parse_chat(const Json& body, std::uint32_t vocab_size);

}  // namespace octavo
