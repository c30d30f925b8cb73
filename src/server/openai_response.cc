#include "server/openai_response.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/utf8.h"

namespace octavo {
namespace {

/// Tokens as the logprobs fields show them.
class TokenTexts {
 public:
  TokenTexts(const Tokenizer* tokenizer, bool as_ids)
      : tokenizer_(tokenizer), as_ids_(as_ids || tokenizer == nullptr) {}

  [[nodiscard]] std::string bytes(TokenId id) const {
    return tokenizer_ == nullptr ? std::string() : tokenizer_->token_bytes(id);
  }
  /// A part of a character reads "bytes:\xe4\xb8", so that different tokens stay different.
  [[nodiscard]] std::string name(TokenId id) const {
    if (as_ids_) return fmt::format("token_id:{}", id.value);
    std::string text = bytes(id);
    if (valid_utf8(text)) return text;
    std::string escaped = "bytes:";
    for (const char byte : text) escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    return escaped;
  }

 private:
  const Tokenizer* tokenizer_;
  bool as_ids_;
};

Json finish_json(const OutputEvent& event) {
  if (!event.finish) return nullptr;
  switch (*event.finish) {
    case FinishReason::kStop: return "stop";
    case FinishReason::kLength: return "length";
    case FinishReason::kAbort: return "abort";
    case FinishReason::kError: return "error";
  }
  return nullptr;
}

/// The stop string, or the stop token if it was one that the request named.
Json stop_reason_json(const OutputEvent& event, const GenerationCall& call) {
  if (!event.stop_reason.empty()) return event.stop_reason;
  const auto& named = call.params.stop_token_ids;
  if (event.stop_token && std::find(named.begin(), named.end(), *event.stop_token) != named.end())
    return event.stop_token->value;
  return nullptr;
}

Json ids_json(const std::vector<TokenId>& ids) {
  Json list = Json::array();
  for (const TokenId id : ids) list.push_back(id.value);
  return list;
}

class CompletionFormat final : public AnswerFormat {
 public:
  CompletionFormat(const CompletionCall& call, const Tokenizer* tokenizer)
      : call_(call), echo_(call.echo), texts_(tokenizer, call.tokens_as_ids) {}

  [[nodiscard]] const char* id_prefix() const override { return "cmpl-"; }
  [[nodiscard]] const char* object(bool /*chunk*/) const override { return "text_completion"; }

  [[nodiscard]] Json whole(const Piece& piece) const override {
    const bool echo = echo_ && piece.first;
    Json choice{{"index", piece.index},
                {"text", echo ? piece.prompt.text + piece.event.text : piece.event.text},
                {"logprobs", logprobs(piece, echo)},
                {"finish_reason", finish_json(piece.event)},
                {"stop_reason", stop_reason_json(piece.event, call_)}};
    if (call_.return_token_ids) {
      choice["token_ids"] = ids_json(piece.event.tokens);
      if (piece.first) choice["prompt_token_ids"] = ids_json(piece.prompt.ids);
    }
    return choice;
  }

  [[nodiscard]] std::vector<Json> chunks(const Piece& piece) const override {
    const OutputEvent& event = piece.event;
    const bool something = !event.text.empty() || !event.logprobs.empty() || event.finish || (piece.first && echo_) ||
                           (call_.return_token_ids && !event.tokens.empty());
    return something ? std::vector<Json>{whole(piece)} : std::vector<Json>{};
  }

 private:
  struct Columns {
    Json tokens = Json::array(), token_logprobs = Json::array(), top_logprobs = Json::array(),
         text_offset = Json::array();
  };

  [[nodiscard]] Json logprobs(const Piece& piece, bool echo) const {
    if (!call_.params.logprobs) return nullptr;
    Columns columns;
    if (echo) {
      for (const TokenLogprob& token : piece.prompt.logprobs) add(token, columns, piece.text_offset);
    }
    for (const TokenLogprob& token : piece.event.logprobs) add(token, columns, piece.text_offset);
    return {{"tokens", std::move(columns.tokens)},
            {"token_logprobs", std::move(columns.token_logprobs)},
            {"top_logprobs", std::move(columns.top_logprobs)},
            {"text_offset", std::move(columns.text_offset)}};
  }

  void add(const TokenLogprob& token, Columns& columns, std::size_t& text_offset) const {
    const std::string name = texts_.name(token.id);
    columns.tokens.push_back(name);
    columns.text_offset.push_back(text_offset);
    text_offset += count_characters(name);
    if (!token.logprob) {  // the first token of a prompt
      columns.token_logprobs.push_back(nullptr);
      columns.top_logprobs.push_back(nullptr);
      return;
    }
    Json top = Json::object();  // best first; of two tokens with the same text the likelier stays
    for (const auto& [id, logprob] : token.top) top.emplace(texts_.name(id), json_logprob(logprob));
    top.emplace(name, json_logprob(*token.logprob));
    columns.token_logprobs.push_back(json_logprob(*token.logprob));
    columns.top_logprobs.push_back(std::move(top));
  }

  GenerationCall call_;
  bool echo_;
  TokenTexts texts_;
};

class ChatFormat final : public AnswerFormat {
 public:
  ChatFormat(const ChatCall& call, const Tokenizer* tokenizer) : call_(call), texts_(tokenizer, call.tokens_as_ids) {}

  [[nodiscard]] const char* id_prefix() const override { return "chatcmpl-"; }
  [[nodiscard]] const char* object(bool chunk) const override {
    return chunk ? "chat.completion.chunk" : "chat.completion";
  }

  [[nodiscard]] Json whole(const Piece& piece) const override {
    Json choice{{"index", piece.index},
                {"message", {{"role", "assistant"}, {"content", piece.event.text}, {"refusal", nullptr}}},
                {"logprobs", logprobs(piece.event)},
                {"finish_reason", finish_json(piece.event)},
                {"stop_reason", stop_reason_json(piece.event, call_)}};
    if (call_.return_token_ids) choice["token_ids"] = ids_json(piece.event.tokens);
    return choice;
  }

  /// The role, the text, the end: a chunk each.
  [[nodiscard]] std::vector<Json> chunks(const Piece& piece) const override {
    const OutputEvent& event = piece.event;
    std::vector<Json> out;
    if (piece.first) out.push_back(chunk(piece, {{"role", "assistant"}, {"content", ""}}));
    if (!event.text.empty() || !event.logprobs.empty() || (call_.return_token_ids && !event.tokens.empty())) {
      Json text = chunk(piece, {{"content", event.text}});
      text["logprobs"] = logprobs(event);
      if (call_.return_token_ids) text["token_ids"] = ids_json(event.tokens);
      out.push_back(std::move(text));
    }
    if (event.finish) {
      Json end = chunk(piece, Json::object());
      end["finish_reason"] = finish_json(event);
      end["stop_reason"] = stop_reason_json(event, call_);
      out.push_back(std::move(end));
    }
    return out;
  }

 private:
  static Json chunk(const Piece& piece, Json delta) {
    return {{"index", piece.index}, {"delta", std::move(delta)}, {"logprobs", nullptr}, {"finish_reason", nullptr}};
  }

  [[nodiscard]] Json logprobs(const OutputEvent& event) const {
    if (!call_.params.logprobs) return nullptr;
    Json content = Json::array();
    for (const TokenLogprob& token : event.logprobs) {
      Json entry = one(token.id, token.logprob.value_or(0));
      Json top = Json::array();
      for (const auto& [id, logprob] : token.top) top.push_back(one(id, logprob));
      entry["top_logprobs"] = std::move(top);
      content.push_back(std::move(entry));
    }
    return {{"content", std::move(content)}, {"refusal", nullptr}};
  }

  [[nodiscard]] Json one(TokenId id, float logprob) const {
    Json bytes = Json::array();
    for (const char byte : texts_.bytes(id)) bytes.push_back(static_cast<unsigned char>(byte));
    return {{"token", texts_.name(id)}, {"logprob", json_logprob(logprob)}, {"bytes", std::move(bytes)}};
  }

  GenerationCall call_;
  TokenTexts texts_;
};

}  // namespace

std::unique_ptr<AnswerFormat> completion_format(const CompletionCall& call, const Tokenizer* tokenizer) {
  return std::make_unique<CompletionFormat>(call, tokenizer);
}

std::unique_ptr<AnswerFormat> chat_format(const ChatCall& call, const Tokenizer* tokenizer) {
  return std::make_unique<ChatFormat>(call, tokenizer);
}

Json usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
}

}  // namespace octavo
