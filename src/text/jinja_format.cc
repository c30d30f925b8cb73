#include "text/jinja_format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "text/jinja_big.h"
#include "text/jinja_number.h"
#include "text/jinja_unicode.h"

namespace octavo::jinja {
namespace {

constexpr int kMaxWidth = 100'000;
constexpr int kMaxPrecision = 1000;

/// One placeholder: [[fill]align][sign][#][0][width][,][.precision][type].
struct Spec {
  std::string fill = " ";
  char align = '\0';  // < > ^ or = (padding after the sign)
  char sign = '-';    // - + or space
  bool alternate = false;
  bool zero = false;
  char group = '\0';  // , or _
  int width = 0;
  int precision = -1;
  char type = '\0';
};

int read_number(std::string_view text, std::size_t& at, int limit) {
  int value = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    value = value * 10 + (text[at++] - '0');
    if (value > limit) fail("a format's width or precision is beyond " + std::to_string(limit));
  }
  return value;
}

std::string padded(std::string body, const Spec& spec, char default_align) {
  const auto length = static_cast<int>(code_points(body));
  if (length >= spec.width) return body;
  const auto missing = static_cast<std::size_t>(spec.width - length);
  const char align = spec.align ? spec.align : default_align;
  const std::size_t before = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  const std::size_t sign = align == '=' && !body.empty() && (body[0] == '-' || body[0] == '+' || body[0] == ' ');
  std::string out = body.substr(0, sign);
  for (std::size_t i = 0; i < before; ++i) out += spec.fill;
  out += body.substr(sign);
  for (std::size_t i = before; i < missing; ++i) out += spec.fill;
  return out;
}

std::string grouped(std::string digits, char separator, std::size_t size) {
  const std::size_t end = std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
  for (std::size_t at = end; at > size; at -= size) digits.insert(at - size, 1, separator);
  return digits;
}

std::string with_sign(bool negative, std::string magnitude, const Spec& spec) {
  if (negative) return "-" + magnitude;
  return spec.sign == '-' ? magnitude : spec.sign + magnitude;
}

std::string format_float(double value, const Spec& spec) {
  const double magnitude = std::fabs(value);
  char type = spec.type ? spec.type : spec.precision < 0 ? 'r' : 'g';
  std::string body;
  if (!std::isfinite(value)) {
    body = std::isnan(value) ? "nan" : "inf";
    if (type >= 'A' && type <= 'Z') body = to_upper(body);
  } else if (type == 'r') {
    body = float_text(magnitude);
  } else {
    const bool percent = type == '%';
    if (percent) type = 'f';
    const char pattern[] = {'%', '.', '*', type, '\0'};
    const char alternate[] = {'%', '#', '.', '*', type, '\0'};
    const int precision = spec.precision < 0 ? 6 : spec.precision;
    char buffer[kMaxPrecision + 400];
    std::snprintf(buffer, sizeof buffer, spec.alternate ? alternate : pattern, precision,
                  percent ? magnitude * 100 : magnitude);
    body = buffer;
    const bool plain = body.find_first_of(".e") == body.npos;
    if (!spec.type && plain) body += ".0";
    if (percent) body += '%';
  }
  if (spec.group) body = grouped(std::move(body), spec.group, 3);
  return with_sign(std::signbit(value) && !std::isnan(value), std::move(body), spec);
}

std::string format_integer(const Value& value, const Spec& spec) {
  BigInteger integer = to_big(value);
  const bool negative = integer < 0;
  if (negative) integer = -integer;
  const char kind = static_cast<char>(spec.type | 0x20);
  std::string digits;
  if (kind == 'x' || kind == 'o') {
    digits = integer.str(0, kind == 'x' ? std::ios_base::hex : std::ios_base::oct);
    digits = spec.type == 'X' ? to_upper(digits) : to_lower(digits);
  } else if (kind == 'b') {
    for (BigInteger rest = integer; rest != 0 || digits.empty(); rest >>= 1) digits += (rest & 1) != 0 ? '1' : '0';
    std::reverse(digits.begin(), digits.end());
  } else {
    digits = integer.str();
    if (spec.precision > static_cast<int>(digits.size())) {
      digits.insert(0, static_cast<std::size_t>(spec.precision) - digits.size(), '0');
    }
  }
  if (spec.group) digits = grouped(std::move(digits), spec.group, kind == 'x' || kind == 'o' || kind == 'b' ? 4 : 3);
  if (spec.alternate && (kind == 'x' || kind == 'o' || kind == 'b')) digits = std::string("0") + spec.type + digits;
  return with_sign(negative, std::move(digits), spec);
}

std::string character(const Value& value) {
  if (value.is_text() && code_points(value.text()) == 1) return value.text();
  const auto code = as_index(value);
  if (!code || *code < 0 || *code > 0x10ffff) fail("%c needs a character or its code");
  std::string out;
  append_code_point(out, static_cast<char32_t>(*code));
  return out;
}

std::string shortened(std::string text, int precision) {
  if (precision >= 0) text.resize(byte_offset(text, static_cast<std::size_t>(precision)));
  return text;
}

std::string percent_item(Runtime& runtime, const Spec& spec, const Value& value) {
  Spec number = spec;
  if (spec.zero && spec.align == '\0') {
    number.fill = "0";
    number.align = '=';
  }
  switch (spec.type) {
    case 's': return padded(shortened(runtime.text(value), spec.precision), spec, '>');
    case 'r':
    case 'a': return padded(shortened(repr(value), spec.precision), spec, '>');
    case 'c': return padded(character(value), spec, '>');
    case 'd':
    case 'i':
    case 'u':
      if (!value.is_number()) fail("%d format: a real number is required, not " + std::string(type_name(value)));
      return padded(format_integer(value.is_float() ? truncate(*value.real()) : value, number), number, '>');
    case 'x':
    case 'X':
    case 'o':
      if (!value.is_integer()) fail("an integer is required for %x and %o, not " + std::string(type_name(value)));
      return padded(format_integer(value, number), number, '>');
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
      if (!value.is_number()) fail("must be real number, not " + std::string(type_name(value)));
      return padded(format_float(to_double(value), number), number, '>');
    default: fail(std::string("unsupported format character '") + spec.type + "'");
  }
}

/// format(value, spec).
std::string brace_item(Runtime& runtime, const Value& value, std::string_view text) {
  if (text.empty()) return runtime.text(value);
  Spec spec;
  std::size_t at = 0;
  constexpr std::string_view kAligns = "<>^=";
  std::size_t after_fill = 0;
  bool fill_given = false;
  (void)next_code_point(text, after_fill);
  if (after_fill < text.size() && kAligns.find(text[after_fill]) != kAligns.npos) {
    spec.fill = text.substr(0, after_fill);
    spec.align = text[after_fill];
    at = after_fill + 1;
    fill_given = true;
  } else if (kAligns.find(text[0]) != kAligns.npos) {
    spec.align = text[at++];
  }
  const auto next = [&](std::string_view choices) {
    return at < text.size() && choices.find(text[at]) != choices.npos ? text[at++] : '\0';
  };
  if (const char sign = next("+- ")) spec.sign = sign;
  spec.alternate = next("#") != '\0';
  if (next("0")) {
    if (!fill_given) spec.fill = "0";
    if (spec.align == '\0') spec.align = value.is_text() ? '<' : '=';
  }
  spec.width = read_number(text, at, kMaxWidth);
  spec.group = next(",_");
  if (next(".")) spec.precision = read_number(text, at, kMaxPrecision);
  if (at < text.size()) spec.type = text[at++];
  if (at != text.size()) fail("invalid format specifier '" + std::string(text) + "'");
  const auto takes = [&](std::string_view types) { return spec.type == '\0' || types.find(spec.type) != types.npos; };
  if (value.is_float() && takes("eEfFgG%")) return padded(format_float(*value.real(), spec), spec, '>');
  if (value.is_integer() && spec.type && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos) {
    return padded(format_float(to_double(value), spec), spec, '>');
  }
  if (value.is_integer() && takes("bcdoxXn")) {
    if (spec.type == 'c') return padded(character(value), spec, '<');
    return padded(format_integer(value, spec), spec, '>');
  }
  if (value.is_text() && takes("s")) {
    return padded(shortened(runtime.text(value), spec.precision), spec, '<');
  }
  fail("format '" + std::string(text) + "' does not fit a value of type " + std::string(type_name(value)));
}

/// Walks the fields of text.format().
class Braces {
 public:
  Braces(Runtime& runtime, const Args& args) : runtime_(runtime), args_(args) {}

  std::string run(std::string_view format, int depth) {
    if (depth > 2) fail("Max string recursion exceeded");
    std::string out;
    for (std::size_t at = 0; at < format.size(); ++at) {
      const char c = format[at];
      if ((c == '{' || c == '}') && at + 1 < format.size() && format[at + 1] == c) {
        out += c;
        ++at;
      } else if (c == '}') {
        fail("Single '}' encountered in format string");
      } else if (c == '{') {
        const std::size_t end = closing(format, at);
        out += field(format.substr(at + 1, end - at - 1), depth);
        runtime_.charge(4);
        at = end;
      } else {
        out += c;
      }
      if (out.size() > kMaxTextBytes) fail("a text grew beyond the limit");
    }
    return out;
  }

 private:
  static std::size_t closing(std::string_view format, std::size_t at) {
    int open = 0;
    for (; at < format.size(); ++at) {
      if (format[at] == '{') ++open;
      if (format[at] == '}' && --open == 0) return at;
    }
    fail("expected '}' before end of string");
  }

  std::string field(std::string_view text, int depth) {
    const std::size_t name_end = std::min(text.find_first_of("!:"), text.size());
    Value value = lookup(text.substr(0, name_end));
    std::string_view rest = text.substr(name_end);
    if (rest.starts_with('!')) {
      const char conversion = rest.size() > 1 ? rest[1] : '\0';
      if (conversion != 'r' && conversion != 's' && conversion != 'a') fail("unknown conversion in a format string");
      value = Value(conversion == 's' ? runtime_.text(value) : repr(value));
      rest.remove_prefix(2);
    }
    if (rest.starts_with(':')) rest.remove_prefix(1);
    return brace_item(runtime_, value, run(rest, depth + 1));
  }

  Value lookup(std::string_view path) {
    const std::size_t end = std::min(path.find_first_of(".["), path.size());
    Value value = first(path.substr(0, end));
    std::string_view rest = path.substr(end);
    while (!rest.empty()) {
      const bool bracket = rest[0] == '[';
      rest.remove_prefix(1);
      const std::size_t stop = std::min(bracket ? rest.find(']') : rest.find_first_of(".["), rest.size());
      const std::string key(rest.substr(0, stop));
      const auto number = bracket ? parse_integer(key, 10) : std::nullopt;
      value = bracket ? runtime_.item(value, number ? *number : Value(key)) : runtime_.attribute(value, key);
      rest.remove_prefix(std::min(stop + (bracket ? 1 : 0), rest.size()));
    }
    return value;
  }

  Value first(std::string_view name) {
    const auto number = parse_integer(name, 10);
    if (name.empty() || number) {
      const auto index = name.empty() ? automatic_++ : *as_index(*number);
      if (index < 0 || index >= static_cast<std::int64_t>(args_.positional.size())) {
        fail("Replacement index " + std::to_string(index) + " out of range for positional args tuple");
      }
      return args_.positional[static_cast<std::size_t>(index)];
    }
    for (const auto& [key, value] : args_.named) {
      if (key == name) return value;
    }
    fail("format() has no argument '" + std::string(name) + "'");
  }

  Runtime& runtime_;
  const Args& args_;
  std::int64_t automatic_ = 0;
};

}  // namespace

std::string format_percent(Runtime& runtime, std::string_view format, const Value& values) {
  const Tuple* tuple = values.tuple();
  std::size_t used = 0;
  const auto next = [&]() -> const Value& {
    if (tuple ? used >= tuple->items.size() : used >= 1) fail("not enough arguments for format string");
    return tuple ? tuple->items[used++] : (++used, values);
  };
  bool named = false;
  std::string out;
  for (std::size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '%') {
      out += format[at];
      continue;
    }
    ++at;
    Spec spec;
    std::optional<Value> item;
    if (at < format.size() && format[at] == '(') {
      const std::size_t end = format.find(')', at);
      if (end == format.npos) fail("incomplete format key");
      if (!values.dict()) fail("format requires a mapping");
      const std::string key(format.substr(at + 1, end - at - 1));
      const Value* found = values.dict()->find(std::string_view(key));
      if (!found) fail("the format's mapping has no key '" + key + "'");
      item = *found;
      named = true;
      at = end + 1;
    }
    for (; at < format.size(); ++at) {
      if (format[at] == '-') {
        spec.align = '<';
      } else if (format[at] == '+' || (format[at] == ' ' && spec.sign != '+')) {
        spec.sign = format[at];
      } else if (format[at] == '#') {
        spec.alternate = true;
      } else if (format[at] == '0') {
        spec.zero = true;
      } else if (format[at] != ' ') {
        break;
      }
    }
    const auto read = [&](int limit) {
      if (at >= format.size() || format[at] != '*') return read_number(format, at, limit);
      ++at;
      const auto given = as_index(next());
      if (!given) fail("* wants int");
      return static_cast<int>(std::clamp<std::int64_t>(*given, 0, limit));
    };
    spec.width = read(kMaxWidth);
    if (at < format.size() && format[at] == '.') {
      ++at;
      spec.precision = read(kMaxPrecision);
    }
    if (at >= format.size()) fail("incomplete format");
    spec.type = format[at];
    if (spec.type == '%') {
      out += '%';
    } else {
      out += percent_item(runtime, spec, item ? *item : next());
    }
    runtime.charge(4);
    if (out.size() > kMaxTextBytes) fail("a text grew beyond the limit");
  }
  const bool left_over = tuple ? used < tuple->items.size() : used == 0;
  const bool may_be_mapping = !tuple && !values.is_text() && size_of(values);  // anything with items
  if (left_over && !named && !may_be_mapping) fail("not all arguments converted during string formatting");
  runtime.charge(out.size() / 16);
  return out;
}

std::string format_braces(Runtime& runtime, std::string_view format, const Args& args) {
  std::string out = Braces(runtime, args).run(format, 0);
  runtime.charge(out.size() / 16);
  return out;
}

}  // namespace octavo::jinja
