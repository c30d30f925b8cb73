#include "cli/chat_prompt.h"

#include <optional>

#include "cli/common.h"
#include "cli/jsonl.h"

namespace octavo {

Result<std::vector<TokenId>> chat_prompt(const Engine& engine, const std::vector<ChatMessage>& messages) {
  OCTAVO_TRY(const Tokenizer* tokenizer, tokenizer_of(engine));
  if (engine.chat_template() == nullptr) {
    return Error{ErrorCode::kUnsupported,
                 engine.report().model.name +
                     " has no chat template (a base model): use generate, or give one with --chat-template FILE",
                 "--chat-template"};
  }
  const auto spelling = [tokenizer](std::optional<TokenId> id) { return id ? tokenizer->token_bytes(*id) : ""; };
  Json context = {{"messages", Json::array()},
                  {"add_generation_prompt", true},
                  {"bos_token", spelling(tokenizer->bos())},
                  {"eos_token", spelling(tokenizer->eos())}};
  for (const ChatMessage& message : messages) {
    context["messages"].push_back({{"role", message.role}, {"content", message.content}});
  }
  OCTAVO_TRY(const std::string text, engine.chat_template()->render(dump(context), local_now()));
  return tokenizer->encode(text, {.add_special = false, .parse_special = true});
}

}  // namespace octavo
