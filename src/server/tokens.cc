// POST /tokenize, /detokenize, /apply-template, GET /tokenizer_info: the shapes of vLLM ({"prompt"} or {"messages"})
// and of llama.cpp ({"content"}), told apart by their keys.
#include <fmt/format.h>

#include "server/field_reader.h"
#include "server/service.h"
#include "server/utf8.h"

namespace octavo {
namespace {

Result<Json> parse_object(const Exchange& exchange) {
  OCTAVO_TRY(Json body, parse_json(exchange.request().body));
  if (!body.is_object()) return Error{ErrorCode::kInvalidArgument, "The body must be a JSON object.", {}};
  return body;
}

Json ids_json(const std::vector<TokenId>& ids) {
  Json list = Json::array();
  for (const TokenId id : ids) list.push_back(id.value);
  return list;
}

/// A piece is its text; bytes that are not text are told as numbers.
Json piece_json(const std::string& bytes) {
  if (valid_utf8(bytes)) return bytes;
  Json list = Json::array();
  for (const char byte : bytes) list.push_back(static_cast<unsigned char>(byte));
  return list;
}

/// {"content", "add_special", "parse_special", "with_pieces"} -> {"tokens"}
Result<Json> tokenize_content(const Tokenizer& tokenizer, FieldReader& in) {
  std::string content;
  EncodeOptions options{.add_special = false, .parse_special = true};
  bool with_pieces = false;
  in.read("content", content);
  in.read("add_special", options.add_special);
  in.read("parse_special", options.parse_special);
  in.read("with_pieces", with_pieces);
  if (in.error()) return *in.error();
  const std::vector<TokenId> ids = tokenizer.encode(content, options);
  if (!with_pieces) return Json{{"tokens", ids_json(ids)}};
  Json pieces = Json::array();
  for (const TokenId id : ids) pieces.push_back({{"id", id.value}, {"piece", piece_json(tokenizer.token_bytes(id))}});
  return Json{{"tokens", std::move(pieces)}};
}

/// {"prompt" or "messages", "model", "add_special_tokens", "return_token_strs"} -> {"tokens", "count", "max_model_len"}
Result<Json> tokenize_prompt(const Service& service, const Tokenizer& tokenizer, const Json& body) {
  FieldReader in(body);
  std::string text, model;
  EncodeOptions options;
  bool strings = false;
  in.read("model", model);
  OCTAVO_CHECK_OK(check_model(service, model));
  if (in.find("messages") != nullptr) {
    OCTAVO_TRY(const ChatCall call, parse_chat(body, service.engine.report().model.vocab_size));
    OCTAVO_TRY(text, render_chat(service, call));
    options.add_special = false;
  } else if (in.find("prompt") != nullptr) {
    in.read("prompt", text);
  } else {
    in.fail("prompt", ErrorCode::kInvalidArgument, "Send a \"prompt\", \"messages\" or \"content\" to tokenize.");
  }
  in.read("add_special_tokens", options.add_special);
  in.read("return_token_strs", strings);
  if (in.error()) return *in.error();
  const std::vector<TokenId> ids = tokenizer.encode(text, options);
  Json out{{"count", ids.size()}, {"max_model_len", service.engine.report().max_model_len}, {"tokens", ids_json(ids)}};
  if (strings) {
    Json list = Json::array();
    for (const TokenId id : ids) list.push_back(tokenizer.token_bytes(id));
    out["token_strs"] = std::move(list);
  }
  return out;
}

Result<Json> tokenize(const Service& service, const Exchange& exchange) {
  OCTAVO_TRY(const Tokenizer* tokenizer, tokenizer_of(service));
  OCTAVO_TRY(const Json body, parse_object(exchange));
  FieldReader in(body);
  return in.find("content") != nullptr ? tokenize_content(*tokenizer, in) : tokenize_prompt(service, *tokenizer, body);
}

/// The text under both names: vLLM's "prompt" and llama.cpp's "content".
Result<Json> detokenize(const Service& service, const Exchange& exchange) {
  OCTAVO_TRY(const Tokenizer* tokenizer, tokenizer_of(service));
  OCTAVO_TRY(const Json body, parse_object(exchange));
  FieldReader in(body);
  std::vector<TokenId> ids;
  std::string model;
  in.read("model", model);
  in.read("tokens", ids, service.engine.report().model.vocab_size);
  if (in.find("tokens") == nullptr)
    in.fail("tokens", ErrorCode::kInvalidArgument, "tokens is missing; it must be a list of token ids.");
  if (in.error()) return *in.error();
  OCTAVO_CHECK_OK(check_model(service, model));
  OCTAVO_TRY(const std::string text, tokenizer->decode(ids, false));
  return Json{{"prompt", text}, {"content", text}};
}

Result<Json> apply_template(const Service& service, const Exchange& exchange) {
  OCTAVO_TRY(const Json body, parse_object(exchange));
  OCTAVO_TRY(const ChatCall call, parse_chat(body, service.engine.report().model.vocab_size));
  OCTAVO_CHECK_OK(check_model(service, call.model));
  OCTAVO_TRY(const std::string text, render_chat(service, call));
  return Json{{"prompt", text}};
}

Result<Json> tokenizer_info(const Service& service) {
  OCTAVO_TRY(const Tokenizer* tokenizer, tokenizer_of(service));
  const auto text = [&](std::optional<TokenId> id) { return id ? Json(tokenizer->token_bytes(*id)) : Json(nullptr); };
  const ChatTemplate* chat_template = service.engine.chat_template();
  return Json{{"tokenizer_class", tokenizer->description()},
              {"vocab_size", tokenizer->vocab_size()},
              {"bos_token", text(tokenizer->bos())},
              {"eos_token", text(tokenizer->eos())},
              {"pad_token", nullptr},
              {"chat_template", chat_template == nullptr ? Json(nullptr) : Json(chat_template->source())}};
}

void reply(Exchange& exchange, const Result<Json>& result) {
  if (result)
    reply_json(exchange, *result);
  else
    reply_error(exchange, result.error());
}

}  // namespace

void serve_tokenize(Service& service, const std::shared_ptr<Exchange>& exchange) {
  reply(*exchange, tokenize(service, *exchange));
}
void serve_detokenize(Service& service, const std::shared_ptr<Exchange>& exchange) {
  reply(*exchange, detokenize(service, *exchange));
}
void serve_apply_template(Service& service, const std::shared_ptr<Exchange>& exchange) {
  reply(*exchange, apply_template(service, *exchange));
}
void serve_tokenizer_info(Service& service, const std::shared_ptr<Exchange>& exchange) {
  reply(*exchange, tokenizer_info(service));
}

}  // namespace octavo
