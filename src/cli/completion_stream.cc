#include "cli/completion_stream.h"

#include <fmt/format.h>

#include <utility>

#include "cli/jsonl.h"

namespace octavo {
namespace {

constexpr std::size_t kMaxLineBytes = std::size_t{16} << 20U;

Json parse(std::string_view text) { return Json::parse(text, nullptr, /*allow_exceptions=*/false); }

/// Null: `value` has no such member.
const Json* member(const Json& value, const char* name) {
  if (!value.is_object()) return nullptr;
  const auto found = value.find(name);
  return found == value.end() || found->is_null() ? nullptr : &*found;
}

std::uint64_t count(const Json& value, const char* name) {
  const Json* number = member(value, name);
  return number != nullptr && number->is_number_unsigned() ? number->get<std::uint64_t>() : 0;
}

/// One printable line of at most 200 bytes.
std::string brief(std::string_view text) {
  constexpr std::size_t kMost = 200;
  std::string out;
  for (const char c : text.substr(0, kMost)) out += c >= ' ' ? c : ' ';
  return text.size() > kMost ? out + "..." : out;
}

std::string message_of(const Json& error) {
  const Json* message = member(error, "message");
  if (message != nullptr && message->is_string()) return brief(message->get_ref<const std::string&>());
  return brief(error.is_string() ? error.get<std::string>() : dump(error));
}

}  // namespace

std::string error_message(std::string_view body) {
  const Json value = parse(body);
  const Json* error = member(value, "error");
  return error != nullptr ? message_of(*error) : brief(body);
}

void CompletionStream::fail(std::string why) {
  if (answer_.error.empty()) answer_.error = std::move(why);
}

void CompletionStream::add(std::string_view bytes, double now_ms) {
  while (answer_.error.empty()) {
    const std::size_t end = bytes.find('\n');
    line_.append(bytes.substr(0, end));
    if (line_.size() > kMaxLineBytes) fail(fmt::format("an event of more than {} bytes", kMaxLineBytes));
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    take_line(line_, now_ms);
    line_.clear();
  }
}

void CompletionStream::take_line(std::string_view line, double now_ms) {
  constexpr std::string_view kData = "data:";
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (!line.starts_with(kData)) return;  // blank lines, comments, other fields
  line.remove_prefix(kData.size());
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (line == "[DONE]") {
    done_ = true;
  } else if (!done_) {
    take_event(line, now_ms);
  }
}

void CompletionStream::take_event(std::string_view data, double now_ms) {
  const Json event = parse(data);
  if (!event.is_object()) return fail(fmt::format("an event is no JSON object: {}", brief(data)));
  if (const Json* error = member(event, "error")) return fail(message_of(*error));
  if (const Json* usage = member(event, "usage")) {
    answer_.prompt_tokens = count(*usage, "prompt_tokens");
    answer_.output_tokens = count(*usage, "completion_tokens");
  }
  const Json* choices = member(event, "choices");
  if (choices == nullptr || !choices->is_array() || choices->empty()) return;
  finished_ = finished_ || member(choices->front(), "finish_reason") != nullptr;
  // An event that only says why the answer ended brings no token.
  const Json* text = member(choices->front(), "text");
  const Json* ids = member(choices->front(), "token_ids");
  const bool bare = (text == nullptr || (text->is_string() && text->get_ref<const std::string&>().empty())) &&
                    (ids == nullptr || ids->empty());
  if (finished_ && bare) return;
  ++events_;
  if (answer_.first_ms) {
    answer_.gaps_ms.push_back(now_ms - answer_.last_ms);
  } else {
    answer_.first_ms = now_ms;
  }
  answer_.last_ms = now_ms;
}

StreamedAnswer CompletionStream::finish() {
  if (!done_ && !finished_) fail("the stream ended in the middle of the answer");
  if (!answer_.first_ms) fail("an answer without a token");
  if (answer_.output_tokens == 0) answer_.output_tokens = events_;
  return std::move(answer_);
}

}  // namespace octavo
