// How a piece of output is worded in OpenAI's JSON.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "octavo/request.h"
#include "octavo/tokenizer.h"
#include "server/json.h"
#include "server/openai_request.h"

namespace octavo {

struct TextPrompt {
  std::vector<TokenId> ids;
  std::string text{};                    // for echo
  std::vector<TokenLogprob> logprobs{};  // for echo with logprobs, once the engine has told them
};

/// A part of one choice: an event of a stream, or everything at once.
struct Piece {
  std::size_t index;  // of the choice in the answer
  const TextPrompt& prompt;
  const OutputEvent& event;
  bool first;                // nothing of this choice was told before
  std::size_t& text_offset;  // characters told so far by logprobs
};

class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;
  [[nodiscard]] virtual const char* id_prefix() const = 0;
  [[nodiscard]] virtual const char* object(bool chunk) const = 0;
  /// An entry of `choices` in a whole answer.
  [[nodiscard]] virtual Json whole(const Piece& piece) const = 0;
  /// Entries of `choices`, each for a chunk of its own; none if there is nothing to tell yet.
  [[nodiscard]] virtual std::vector<Json> chunks(const Piece& piece) const = 0;
};

/// `tokenizer` may be null and outlives the format.
[[nodiscard]] std::unique_ptr<AnswerFormat> completion_format(const CompletionCall& call, const Tokenizer* tokenizer);
[[nodiscard]] std::unique_ptr<AnswerFormat> chat_format(const ChatCall& call, const Tokenizer* tokenizer);

[[nodiscard]] Json usage_json(const Usage& usage);

}  // namespace octavo
