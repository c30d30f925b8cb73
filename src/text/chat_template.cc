#include "octavo/chat_template.h"

#include <charconv>
#include <ctime>

#include "text/jinja_eval.h"
#include "text/jinja_json.h"
#include "text/jinja_lexer.h"
#include "text/jinja_parser.h"
#include "text/jinja_unicode.h"
#include "text/utf8.h"

namespace octavo {
namespace {

constexpr std::size_t kMaxSourceBytes = 4U << 20;  // the largest real templates have 30 KiB

Error invalid(std::string message, std::string field) {
  return Error{ErrorCode::kInvalidArgument, std::move(message), std::move(field)};
}

bool is_valid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Unit unit = read_utf8(text, at);
    if (!unit.valid) return false;
    at += unit.length;
  }
  return true;
}

}  // namespace

struct ChatTemplate::State {
  std::string source;
  std::unique_ptr<const jinja::Ast> ast;
};

ChatTemplate::ChatTemplate(std::shared_ptr<const State> state) : state_(std::move(state)) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  if (source.size() > kMaxSourceBytes) {
    return invalid("the chat template has " + std::to_string(source.size()) + " bytes, the limit is " +
                       std::to_string(kMaxSourceBytes),
                   "chat_template");
  }
  if (!is_valid_utf8(source)) return invalid("the chat template is not valid UTF-8", "chat_template");
  try {
    return ChatTemplate(std::make_shared<const State>(State{std::string(source), jinja::parse(source)}));
  } catch (const jinja::SyntaxError& error) {
    return invalid("chat template, line " + std::to_string(error.line) + ": " + error.message, "chat_template");
  } catch (const jinja::Failure& failure) {
    return invalid("chat template: " + failure.message, "chat_template");
  }
}

Result<std::string> ChatTemplate::render(std::string_view context_json, std::chrono::local_seconds now) const {
  try {
    const jinja::Value context = jinja::parse_json(context_json);
    if (!context.dict()) return invalid("the context must be a JSON object", "context");
    std::string text = jinja::render(*state_->ast, context, now);
    if (jinja::has_surrogates(text)) {
      return invalid("the chat template printed half of a surrogate pair, which is no text", "chat_template");
    }
    return text;
  } catch (const jinja::Failure& failure) {
    return invalid(failure.message, "chat_template");
  }
}

const std::string& ChatTemplate::source() const { return state_->source; }

std::chrono::local_seconds local_now() {
  const std::time_t now = std::time(nullptr);
  std::tm civil{};
  localtime_r(&now, &civil);
  using namespace std::chrono;
  return local_days(year(civil.tm_year + 1900) / (civil.tm_mon + 1) / civil.tm_mday) + hours(civil.tm_hour) +
         minutes(civil.tm_min) + seconds(civil.tm_sec);
}

Result<std::chrono::local_seconds> parse_local_time(std::string_view iso) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00";
  const auto wrong = [&] {
    return invalid("'" + std::string(iso) + "' is not a local time: write it as 2026-01-15T12:34:56", "now");
  };
  if (iso.size() != kForm.size()) return wrong();
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool digit = iso[i] >= '0' && iso[i] <= '9';
    if (kForm[i] == '0' ? !digit : iso[i] != kForm[i]) return wrong();
  }
  const auto number = [&](std::size_t at, std::size_t length) {
    int value = 0;
    std::from_chars(iso.data() + at, iso.data() + at + length, value);
    return value;
  };
  using namespace std::chrono;
  const year_month_day date(year(number(0, 4)) / number(5, 2) / number(8, 2));
  if (!date.ok() || number(11, 2) > 23 || number(14, 2) > 59 || number(17, 2) > 59) return wrong();
  return local_days(date) + hours(number(11, 2)) + minutes(number(14, 2)) + seconds(number(17, 2));
}

}  // namespace octavo
