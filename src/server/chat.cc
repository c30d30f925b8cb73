// POST /v1/chat/completions
#include <algorithm>
#include <limits>

#include "server/field_reader.h"
#include "server/generation.h"

namespace octavo {
namespace {

std::string token_text(const Tokenizer& tokenizer, std::optional<TokenId> id) {
  return id ? tokenizer.token_bytes(*id) : std::string();
}

/// Cuts the end of turn that the template wrote behind the last message.
Result<std::string> open_last_message(std::string text, const Json& messages) {
  const Json& content = messages.back()["content"];
  std::string last = content.is_string() ? content.get<std::string>() : std::string();
  last.erase(last.find_last_not_of(" \t\r\n") + 1);  // templates trim
  const auto place = last.empty() ? std::string::npos : text.rfind(last);
  if (place == std::string::npos) {
    return Error{ErrorCode::kInvalidArgument,
                 "continue_final_message is true, but the text of the last message is not in what the template wrote.",
                 "continue_final_message"};
  }
  text.resize(place + last.size());
  return text;
}

}  // namespace

Result<std::string> render_chat(const Service& service, const ChatCall& call) {
  const ChatTemplate* chat_template = service.engine.chat_template();
  if (chat_template == nullptr) {
    return Error{ErrorCode::kInvalidArgument,
                 "This model has no chat template, it may be a base model. Start the server with --chat-template FILE, "
                 "or use /v1/completions.",
                 "messages"};
  }
  OCTAVO_TRY(const Tokenizer* tokenizer, tokenizer_of(service));
  Json context{{"messages", call.messages},
               {"tools", call.tools},
               {"add_generation_prompt", call.add_generation_prompt},
               {"bos_token", token_text(*tokenizer, tokenizer->bos())},
               {"eos_token", token_text(*tokenizer, tokenizer->eos())}};
  if (chat_template->source().find("developer") == std::string::npos) {  // else it knows the role
    for (Json& message : context["messages"]) {
      if (message["role"] == "developer") message["role"] = "system";
    }
  }
  context.update(call.template_kwargs);
  OCTAVO_TRY(std::string text, chat_template->render(to_text(context), local_now()));
  return call.continue_final_message ? open_last_message(std::move(text), call.messages) : Result(std::move(text));
}

void serve_chat(Service& service, const std::shared_ptr<Exchange>& exchange) {
  const auto body = parse_json(exchange->request().body);
  if (!body) return reply_error(*exchange, body.error());
  const auto call = parse_chat(*body, service.engine.report().model.vocab_size);
  if (!call) return reply_error(*exchange, call.error());
  if (const auto known = check_model(service, call->model); !known) return reply_error(*exchange, known.error());
  auto text = render_chat(service, *call);
  if (!text) return reply_error(*exchange, text.error());
  auto ids = prompt_ids(service, *text, call->add_special_tokens);
  if (!ids) return reply_error(*exchange, ids.error());

  std::vector<TextPrompt> prompts{{.ids = std::move(*ids)}};
  Generation::start(service, exchange, *call, std::move(prompts), chat_format(*call, service.engine.tokenizer()),
                    std::numeric_limits<std::uint32_t>::max());
}

}  // namespace octavo
