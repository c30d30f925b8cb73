#include "text/jinja_lexer.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

#include "text/jinja_number.h"
#include "text/jinja_unicode.h"

namespace octavo::jinja {
namespace {

bool is_digit_char(char c) { return c >= '0' && c <= '9'; }

/// Line ends become \n, and one at the very end goes.
std::string normalize(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalize(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) data();
    add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[nodiscard]] std::string_view rest() const { return std::string_view(source_).substr(at_); }
  [[nodiscard]] bool starts(std::string_view text) const { return rest().starts_with(text); }
  [[noreturn]] void fail_here(std::string message) const { throw SyntaxError{line_, std::move(message)}; }

  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, line_, std::move(text), {}}); }

  /// Moves on by n bytes, counting lines.
  void skip(std::size_t n) {
    const auto begin = source_.begin() + static_cast<std::ptrdiff_t>(at_);
    line_ += static_cast<std::uint32_t>(std::count(begin, begin + static_cast<std::ptrdiff_t>(n), '\n'));
    at_ += n;
  }

  void skip_space() { skip(rest().size() - strip(rest(), std::nullopt, true, false).size()); }

  /// Emits source[at_, end) as data in front of a tag that starts at `end` with white-space sign `sign`, and moves
  /// there. Only block and comment tags swallow the blanks between them and the start of their line.
  void emit_data(std::size_t end, char sign, bool lstrip) {
    std::string_view text = std::string_view(source_).substr(at_, end - at_);
    if (sign == '-') {
      text = strip(text, std::nullopt, false, true);
    } else if (sign != '+' && lstrip) {
      const std::size_t newline = text.rfind('\n');
      const std::size_t line_start = newline == text.npos ? 0 : newline + 1;
      const bool at_line_start = line_start > 0 || line_starting_;
      const std::string_view blanks = text.substr(line_start);
      if (at_line_start && strip(blanks, std::nullopt, true, false).empty()) text = text.substr(0, line_start);
    }
    if (!text.empty()) add(TokenKind::kData, std::string(text));
    skip(end - at_);
  }

  [[nodiscard]] char sign_at(std::size_t place) const {
    const char c = place < source_.size() ? source_[place] : '\0';
    return c == '-' || c == '+' ? c : '\0';
  }

  void data() {
    std::size_t tag = at_;
    const auto opens = [&](std::size_t i) {
      return i + 1 < source_.size() && source_[i] == '{' &&
             (source_[i + 1] == '{' || source_[i + 1] == '%' || source_[i + 1] == '#');
    };
    while (tag < source_.size() && !opens(tag)) ++tag;
    if (tag == source_.size()) {
      emit_data(tag, '+', false);
      return;
    }
    const char kind = source_[tag + 1], sign = sign_at(tag + 2);
    emit_data(tag, sign, kind != '{');
    const std::uint32_t begin_line = line_;
    skip(sign ? 3 : 2);
    if (kind == '#') {
      comment();
    } else if (kind == '%') {
      if (const std::size_t length = raw_begin()) {
        raw(length);
      } else {
        tokens_.push_back({TokenKind::kBlockBegin, begin_line, "", {}});
        code("%}", TokenKind::kBlockEnd);
      }
    } else {
      tokens_.push_back({TokenKind::kPrintBegin, begin_line, "", {}});
      code("}}", TokenKind::kPrintEnd);
    }
  }

  /// Moves behind a tag's end of `length` bytes. A block or comment swallows one line end; `-` all white space.
  void close(std::size_t length, char sign, bool trims) {
    skip(length);
    if (sign == '-') {
      skip_space();
    } else if (sign != '+' && trims && starts("\n")) {
      skip(1);
    }
    line_starting_ = at_ > 0 && source_[at_ - 1] == '\n';
  }

  void comment() {
    std::size_t end = source_.find("#}", at_);
    if (end == source_.npos && at_ == source_.size()) return;  // an opening right at the end counts as nothing
    if (end == source_.npos) fail_here("a comment {# has no end #}");
    const char sign = end > at_ ? sign_at(end - 1) : '\0';
    skip(end - at_);
    close(2, sign, true);
  }

  /// The length of "raw %}" if it follows, else 0.
  [[nodiscard]] std::size_t raw_begin() const {
    std::string_view text = strip(rest(), std::nullopt, true, false);
    if (!text.starts_with("raw")) return 0;
    text = strip(text.substr(3), std::nullopt, true, false);
    const bool minus = text.starts_with("-%}");
    if (!minus && !text.starts_with("%}")) return 0;
    text.remove_prefix(minus ? 3 : 2);
    if (minus) text = strip(text, std::nullopt, true, false);
    return rest().size() - text.size();
  }

  void raw(std::size_t begin_length) {
    skip(begin_length);
    line_starting_ = source_[at_ - 1] == '\n';
    for (std::size_t tag = source_.find("{%", at_); tag != source_.npos; tag = source_.find("{%", tag + 1)) {
      const char sign = sign_at(tag + 2);
      const std::size_t inside = tag + (sign ? 3 : 2);
      std::string_view text = strip(std::string_view(source_).substr(inside), std::nullopt, true, false);
      if (!text.starts_with("endraw")) continue;
      text = strip(text.substr(6), std::nullopt, true, false);
      const char end_sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? text[0] : '\0';
      if (end_sign) text.remove_prefix(1);
      if (!text.starts_with("%}")) continue;
      const std::size_t end = source_.size() - text.size();
      emit_data(tag, sign, true);
      skip(end - at_);
      close(2, end_sign, true);
      return;
    }
    if (at_ < source_.size()) fail_here("a {% raw %} has no {% endraw %}");
  }

  void code(std::string_view end, TokenKind end_kind) {
    std::string open;  // the brackets still open
    const bool is_block = end_kind == TokenKind::kBlockEnd;
    while (at_ < source_.size()) {
      if (open.empty()) {
        const char sign = sign_at(at_);
        const bool signed_end = (sign == '-' || (sign == '+' && is_block)) && rest().substr(1).starts_with(end);
        if (signed_end || starts(end)) {
          add(end_kind, "");
          close(signed_end ? 3 : 2, signed_end ? sign : '\0', is_block);
          return;
        }
      }
      token(open);
    }
  }

  void token(std::string& open) {
    std::size_t peek = at_;
    const char32_t c = next_code_point(source_, peek);
    if (is_space(c)) {
      skip(peek - at_);
    } else if (is_digit_char(source_[at_])) {
      number();
    } else if (is_identifier_start(c)) {
      name();
    } else if (c == '\'' || c == '"') {
      string(source_[at_]);
    } else {
      operator_token(open);
    }
  }

  void name() {
    std::size_t end = at_;
    for (std::size_t next = end; next < source_.size(); end = next) {
      if (!is_identifier_part(next_code_point(source_, next))) break;
    }
    const std::size_t length = end - at_;
    add(TokenKind::kName, source_.substr(at_, length));
    skip(length);
  }

  /// The length of a run of digits with single underscores inside, from `from` on.
  [[nodiscard]] std::size_t digits(std::size_t from, std::string_view allowed) const {
    std::size_t end = from;
    while (end < source_.size()) {
      const bool underscore = source_[end] == '_' && end > from;
      const std::size_t digit = end + (underscore ? 1 : 0);
      if (digit >= source_.size() || allowed.find(source_[digit]) == allowed.npos) break;
      end = digit + 1;
    }
    return end - from;
  }

  void number() {
    constexpr std::string_view kDecimal = "0123456789";
    const std::size_t whole = digits(at_, kDecimal);
    std::size_t end = at_ + whole;
    bool is_float = false;
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';  // a.1.2: attributes, not a number with a fraction
    if (!after_dot && end < source_.size() && source_[end] == '.') {
      if (const std::size_t fraction = digits(end + 1, kDecimal)) {
        end += 1 + fraction;
        is_float = true;
      }
    }
    if (!after_dot && end < source_.size() && (source_[end] | 0x20) == 'e') {
      const std::size_t sign = sign_at(end + 1) ? 1 : 0;
      if (const std::size_t exponent = digits(end + 1 + sign, kDecimal)) {
        end += 1 + sign + exponent;
        is_float = true;
      }
    }
    is_float ? float_token(end) : integer_token(whole);
  }

  void float_token(std::size_t end) {
    const auto value = parse_float(source_.substr(at_, end - at_));
    number_token(end - at_, value ? std::optional<Value>(*value) : std::nullopt);
  }

  void integer_token(std::size_t whole) {
    std::size_t length = whole;
    if (source_[at_] == '0') {
      const char letter = at_ + 1 < source_.size() ? static_cast<char>(source_[at_ + 1] | 0x20) : '\0';
      const std::string_view allowed = letter == 'x'   ? "0123456789abcdefABCDEF"
                                       : letter == 'o' ? "01234567"
                                       : letter == 'b' ? "01"
                                                       : "";
      const std::size_t underscore = at_ + 2 < source_.size() && source_[at_ + 2] == '_' ? 1 : 0;
      const std::size_t digit_count = allowed.empty() ? 0 : digits(at_ + 2 + underscore, allowed);
      length = digit_count ? 2 + underscore + digit_count : digits(at_, "0");
    }
    number_token(length, parse_integer(source_.substr(at_, length), 0));
  }

  void number_token(std::size_t length, std::optional<Value> value) {
    if (!value) fail_here("the number " + source_.substr(at_, std::min<std::size_t>(length, 40)) + " is not valid");
    add(TokenKind::kNumber, source_.substr(at_, length));
    tokens_.back().number = std::move(*value);
    skip(length);
  }

  void string(char quote) {
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail_here("a string has no closing quote");
    add(TokenKind::kString, unescape(std::string_view(source_).substr(at_ + 1, end - at_ - 1)));
    skip(end + 1 - at_);
  }

  /// Python's escapes; an unknown one stays as written.
  [[nodiscard]] std::string unescape(std::string_view raw) const {
    std::string out;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] != '\\') {
        out += raw[i];
        continue;
      }
      const char c = raw[++i];
      constexpr std::string_view kLetters = "abfnrtv\\'\"", kMeanings = "\a\b\f\n\r\t\v\\'\"";
      if (const std::size_t known = kLetters.find(c); known != kLetters.npos) {
        out += kMeanings[known];
      } else if (c == '\n') {
        continue;
      } else if (c >= '0' && c <= '7') {
        std::size_t end = i + 1;
        while (end < raw.size() && end < i + 3 && raw[end] >= '0' && raw[end] <= '7') ++end;
        append_code_point(out,
                          static_cast<char32_t>(std::strtoul(std::string(raw.substr(i, end - i)).c_str(), nullptr, 8)));
        i = end - 1;
      } else if (c == 'x' || c == 'u' || c == 'U') {
        const std::size_t width = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        append_code_point(out, hex(raw.substr(i + 1, width), width));
        i += width;
      } else if (c == 'N') {
        fail_here("a string uses \\N{name}, which is not supported: write the character itself");
      } else {
        out += '\\';
        out += c;
      }
    }
    return out;
  }

  [[nodiscard]] char32_t hex(std::string_view text, std::size_t width) const {
    constexpr std::string_view kHex = "0123456789abcdefABCDEF";
    const bool valid = text.size() == width && text.find_first_not_of(kHex) == text.npos;
    const unsigned long value = valid ? std::strtoul(std::string(text).c_str(), nullptr, 16) : 0x110000;
    if (value > 0x10ffff) fail_here("a string has a \\x, \\u or \\U escape that names no character");
    return static_cast<char32_t>(value);
  }

  void operator_token(std::string& open) {
    static constexpr std::array<std::string_view, 27> kOperators = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                                    "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                                    ">",  "<",  "=",  ".",  ":",  "|",  ",", ";", "!"};
    const auto found = std::find_if(kOperators.begin(), kOperators.end(), [&](auto op) { return starts(op); });
    if (found == kOperators.end() || *found == "!") {
      std::size_t end = at_;
      (void)next_code_point(source_, end);
      fail_here("unexpected character '" + source_.substr(at_, end - at_) + "'");
    }
    const char c = (*found)[0];
    if (c == '(' || c == '[' || c == '{') open += c;
    if (c == ')' || c == ']' || c == '}') {
      const char expected = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (open.empty() || open.back() != expected) fail_here(std::string("unexpected '") + c + "'");
      open.pop_back();
    }
    add(TokenKind::kOperator, std::string(*found));
    skip(found->size());
  }

  std::string source_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  bool line_starting_ = true;  // the last tag ended a line, or nothing came before
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace octavo::jinja
