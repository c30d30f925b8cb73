// A conversation as the prompt that the model's template makes of it.
#pragma once
#include <string>
#include <vector>

#include "octavo/engine.h"
#include "octavo/result.h"

namespace octavo {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

/// Token ids ready to generate the next answer. A model without a template is an error that names --chat-template.
[[nodiscard]] Result<std::vector<TokenId>> chat_prompt(const Engine& engine, const std::vector<ChatMessage>& messages);

}  // namespace octavo
