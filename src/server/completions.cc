// POST /v1/completions
#include "server/field_reader.h"
#include "server/generation.h"

namespace octavo {
namespace {

constexpr std::uint32_t kDefaultMaxTokens = 16;

Result<std::vector<TextPrompt>> read_prompts(const Service& service, const CompletionCall& call) {
  std::vector<TextPrompt> prompts;
  for (const PromptInput& input : call.prompts) {
    OCTAVO_TRY(std::vector<TokenId> ids, prompt_ids(service, input, call.add_special_tokens));
    TextPrompt prompt{.ids = std::move(ids)};
    if (call.echo) {
      if (const auto* text = std::get_if<std::string>(&input)) {
        prompt.text = *text;
      } else if (const Tokenizer* tokenizer = service.engine.tokenizer()) {
        OCTAVO_TRY(prompt.text, tokenizer->decode(prompt.ids, call.params.skip_special_tokens));
      }
    }
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

}  // namespace

void serve_completions(Service& service, const std::shared_ptr<Exchange>& exchange) {
  const auto body = parse_json(exchange->request().body);
  if (!body) return reply_error(*exchange, body.error());
  auto call = parse_completion(*body, service.engine.report().model.vocab_size);
  if (!call) return reply_error(*exchange, call.error());
  if (const auto known = check_model(service, call->model); !known) return reply_error(*exchange, known.error());
  auto prompts = read_prompts(service, *call);
  if (!prompts) return reply_error(*exchange, prompts.error());

  if (call->echo) call->params.prompt_logprobs = call->params.logprobs;
  if (call->max_tokens == 0U && !call->params.prompt_logprobs) call->params.prompt_logprobs = 0;  // a pure echo
  Generation::start(service, exchange, *call, std::move(*prompts), completion_format(*call, service.engine.tokenizer()),
                    kDefaultMaxTokens);
}

}  // namespace octavo
