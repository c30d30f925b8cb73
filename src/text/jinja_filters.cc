// Filters on one text or number; those on sequences are in jinja_sequence_filters.cc.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "text/jinja_builtins.h"
#include "text/jinja_format.h"
#include "text/jinja_json.h"
#include "text/jinja_number.h"
#include "text/jinja_objects.h"
#include "text/jinja_operators.h"
#include "text/jinja_unicode.h"

namespace octavo::jinja {
namespace {

/// The result of a filter on text stays markup if its input was.
Value derived(Runtime& runtime, const Value& input, std::string text) {
  runtime.charge(text.size() / 16);
  return Value(std::move(text), input.is_markup());
}

template <std::string (*change)(std::string_view)>
Value changed(Runtime& runtime, const Value& input, const Args& args) {
  const Params none("a case filter", args, {}, 0);
  const std::string text = runtime.text(input);
  runtime.charge(text.size() / 4);
  return derived(runtime, input, change(text));
}

bool starts_word(char32_t c) { return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c); }

/// Upper case after white space, hyphens and opening brackets only, so not after an apostrophe.
std::string title_words(std::string_view text) {
  std::string out;
  std::size_t word = 0;
  const auto flush = [&](std::size_t end) {
    if (word == end) return;
    std::size_t second = word;
    (void)next_code_point(text, second);
    out += to_upper(text.substr(word, second - word));
    out += to_lower(text.substr(second, end - second));
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    if (!starts_word(next_code_point(text, at))) continue;
    flush(begin);
    out += text.substr(begin, at - begin);
    word = at;
  }
  flush(text.size());
  return out;
}

Value filter_trim(Runtime& runtime, const Value& input, const Args& args) {
  const Params params("trim", args, {"chars"}, 0);
  const std::string text = runtime.text(input);
  const auto chars = params[0].is_none() ? std::nullopt : std::optional<std::string_view>(params.text(0));
  return derived(runtime, input, std::string(strip(text, chars, true, true)));
}

Value filter_string(Runtime& runtime, const Value& input, const Args& args) {
  const Params none("string", args, {}, 0);
  return input.is_text() ? input : Value(runtime.text(input));
}

Value filter_replace(Runtime& runtime, const Value& input, const Args& args) {
  const Params params("replace", args, {"old", "new", "count"}, 2);
  const std::int64_t limit = params[2].is_none() ? -1 : params.integer(2, -1);
  return Value(replaced(runtime, runtime.text(input), runtime.text(params[0]), runtime.text(params[1]), limit));
}

const std::string& text_input(const Value& input) {
  if (input.is_undefined()) fail(input.undefined_message());
  if (!input.is_text()) fail("the filter needs a text, got " + std::string(type_name(input)));
  return input.text();
}

Value filter_indent(Runtime& runtime, const Value& input, const Args& args) {
  const Params params("indent", args, {"width", "first", "blank"}, 0);
  const std::string text = text_input(input) + "\n";
  const bool by_text = params[0].is_text();
  const std::int64_t width = by_text ? 0 : std::clamp<std::int64_t>(params.integer(0, 4), 0, kMaxTextBytes);
  const std::string indention = by_text ? params.text(0) : std::string(static_cast<std::size_t>(width), ' ');
  const bool blank = params.flag(2, false);
  std::string out = params.flag(1, false) ? indention : "";
  bool first = true;
  for (const std::string_view line : split_lines(text, false)) {
    if (!first) {
      out += '\n';
      if (blank || !line.empty()) out += indention;
      runtime.charge(1 + indention.size() / 16);
    }
    first = false;
    out += line;
    if (out.size() > kMaxTextBytes) fail("a text grew beyond the limit");
  }
  return derived(runtime, input, std::move(out));
}

Value filter_truncate(Runtime& runtime, const Value& input, const Args& args) {
  const Params params("truncate", args, {"length", "killwords", "end", "leeway"}, 0);
  const std::string end = params.has(2) ? params.text(2) : "...";
  const auto end_length = static_cast<std::int64_t>(code_points(end));
  const std::int64_t length = params.integer(0, 255), leeway = params[3].is_none() ? 5 : params.integer(3, 5);
  if (length < end_length) fail("expected length >= " + std::to_string(end_length) + ", got " + std::to_string(length));
  if (leeway < 0) fail("expected leeway >= 0, got " + std::to_string(leeway));
  if (static_cast<std::int64_t>(runtime.length(input)) - leeway <= length) return input;
  const std::string& text = text_input(input);
  std::string kept = text.substr(0, byte_offset(text, static_cast<std::size_t>(length - end_length)));
  if (!params.flag(1, false)) kept = kept.substr(0, kept.rfind(' '));
  return derived(runtime, input, kept + end);
}

Value filter_center(Runtime& runtime, const Value& input, const Args& args) {
  const Params params("center", args, {"width"}, 0);
  const Value text(runtime.text(input), input.is_markup());
  return find_text_method("center")->call(runtime, text, {{params.has(0) ? params[0] : Value(80)}, {}});
}

Value filter_wordcount(Runtime& runtime, const Value& input, const Args& args) {
  const Params none("wordcount", args, {}, 0);
  const std::string text = runtime.text(input);
  std::int64_t words = 0;
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    const bool part = c == '_' || is_alpha(c) || is_numeric(c) || is_digit(c);
    words += part && !inside;
    inside = part;
  }
  return words;
}

Value filter_format(Runtime& runtime, const Value& input, const Args& args) {
  if (!args.positional.empty() && !args.named.empty()) {
    fail("format can't handle positional and keyword arguments at the same time");
  }
  const std::string format = runtime.text(input);
  if (args.named.empty()) return Value(format_percent(runtime, format, Value::tuple(args.positional)));
  Dict named;
  for (const auto& [name, value] : args.named) named.set(Value(name), value);
  return Value(format_percent(runtime, format, Value::dict(std::move(named))));
}

Value filter_escape(Runtime& runtime, const Value& input, const Args& args) {
  const Params none("escape", args, {}, 0);
  runtime.charge(input.weight());
  return Value(escape(input), true);
}

Value filter_forceescape(Runtime& runtime, const Value& input, const Args& args) {
  const Params none("forceescape", args, {}, 0);
  return Value(escape(Value(runtime.text(input))), true);
}

Value filter_safe(Runtime& runtime, const Value& input, const Args& args) {
  const Params none("safe", args, {}, 0);
  return Value(runtime.text(input), true);
}

std::string percent_encoded(std::string_view text, bool for_query) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 &&
        (std::isalnum(byte) || c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !for_query))) {
      out += c;
    } else if (c == ' ' && for_query) {
      out += '+';
    } else {
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out;
}

Value filter_urlencode(Runtime& runtime, const Value& input, const Args& args) {
  const Params none("urlencode", args, {}, 0);
  if (input.is_text() || !iterable(input)) return Value(percent_encoded(runtime.text(input), false));
  std::vector<Value> pairs = input.dict() ? DictView(input, DictView::Kind::kItems).iterate() : runtime.iterate(input);
  std::string out;
  for (const Value& pair : pairs) {
    const std::vector<Value> parts = runtime.iterate(pair);
    if (parts.size() != 2) fail("urlencode needs pairs of a name and a value");
    if (!out.empty()) out += '&';
    out += percent_encoded(runtime.text(parts[0]), true) + "=" + percent_encoded(runtime.text(parts[1]), true);
  }
  return Value(std::move(out));
}

Value filter_xmlattr(Runtime& runtime, const Value& input, const Args& args) {
  const Params params("xmlattr", args, {"autospace"}, 0);
  if (!input.dict()) fail("xmlattr needs a dict, got " + std::string(type_name(input)));
  runtime.charge(input.weight());
  std::string out;
  for (const auto& [key, value] : input.dict()->entries()) {
    if (value.is_none() || value.is_undefined()) continue;
    if (str(key).find_first_of(" \t\n\r\f\v/>=") != std::string::npos) {
      fail("Invalid character in attribute name: " + repr(key));
    }
    if (!out.empty()) out += ' ';
    out += escape(key) + "=\"" + escape(value) + "\"";
  }
  if (params.flag(0, true) && !out.empty()) out.insert(0, 1, ' ');
  return Value(std::move(out));
}

JsonStyle json_style(const Params& params) {
  JsonStyle style;
  style.ensure_ascii = params.flag(0, false);
  if (params[1].is_text()) style.indent = params.text(1);
  if (!params[1].is_none() && !params[1].is_text()) {
    style.indent = std::string(static_cast<std::size_t>(std::clamp<std::int64_t>(params.integer(1, 0), 0, 4096)), ' ');
  }
  if (style.indent) style.item_separator = ",";
  if (!params[2].is_none()) {
    const auto* pair = params[2].items();
    if (!pair || pair->size() != 2 || !(*pair)[0].is_text() || !(*pair)[1].is_text()) {
      fail("tojson's separators must be two texts");
    }
    style.item_separator = (*pair)[0].text();
    style.key_separator = (*pair)[1].text();
  }
  style.sort_keys = params.flag(3, false);
  return style;
}

Value filter_tojson(Runtime& runtime, const Value& input, const Args& args) {
  const Params params("tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"}, 0);
  runtime.charge(input.weight());
  return derived(runtime, Value(), to_json(input, json_style(params)));
}

/// repr() with the keys of dicts in order; unlike Python's, on one line whatever its length.
Value sorted_keys(const Value& value) {
  if (const Dict* dict = value.dict()) {
    std::vector<Dict::Entry> entries = dict->entries();
    const bool all_text = std::all_of(entries.begin(), entries.end(), [](const auto& e) { return e.first.is_text(); });
    if (all_text) {
      std::sort(entries.begin(), entries.end(),
                [](const auto& a, const auto& b) { return a.first.text() < b.first.text(); });
    }
    Dict out;
    for (const auto& [key, held] : entries) out.set(key, sorted_keys(held));
    return Value::dict(std::move(out));
  }
  if (const auto* items = value.items()) {
    std::vector<Value> out;
    for (const Value& item : *items) out.push_back(sorted_keys(item));
    return value.list() ? Value::list(std::move(out)) : Value::tuple(std::move(out));
  }
  return value;
}

Value filter_pprint(Runtime& runtime, const Value& input, const Args& args) {
  const Params none("pprint", args, {}, 0);
  runtime.charge(2 * input.weight());
  return derived(runtime, Value(), repr(sorted_keys(input)));
}

// Numbers.

const Value& number_input(const Value& input, std::string_view filter) {
  if (input.is_undefined()) fail(input.undefined_message());
  if (!input.is_number())
    fail("bad operand type for " + std::string(filter) + ": '" + std::string(type_name(input)) + "'");
  return input;
}

Value filter_abs(Runtime&, const Value& input, const Args& args) {
  const Params none("abs", args, {}, 0);
  return absolute(number_input(input, "abs()"));
}

std::optional<Value> whole_number(const Value& input, std::int64_t base) {
  if (input.is_integer()) return as_integer(input);
  if (input.is_float()) return std::isnan(*input.real()) ? std::nullopt : std::optional(truncate(*input.real()));
  if (!input.is_text()) return std::nullopt;
  if (base == 0 || (base >= 2 && base <= 36)) {
    if (auto value = parse_integer(input.text(), static_cast<int>(base))) return value;
  }
  const auto real = parse_float(input.text());  // so that "42.23" gives 42
  return real && std::isfinite(*real) ? std::optional(truncate(*real)) : std::nullopt;
}

Value filter_int(Runtime& runtime, const Value& input, const Args& args) {
  const Params params("int", args, {"default", "base"}, 0);
  if (input.is_undefined()) fail(input.undefined_message());
  runtime.charge(input.weight());
  const auto value = whole_number(input, params.integer(1, 10));
  return value ? *value : params.has(0) ? params[0] : Value(0);
}

Value filter_float(Runtime&, const Value& input, const Args& args) {
  const Params params("float", args, {"default"}, 0);
  if (input.is_undefined()) fail(input.undefined_message());
  if (input.is_number()) return to_double(input);
  const auto value = input.is_text() ? parse_float(input.text()) : std::nullopt;
  return value ? Value(*value) : params.has(0) ? params[0] : Value(0.0);
}

Value filter_round(Runtime&, const Value& input, const Args& args) {
  const Params params("round", args, {"precision", "method"}, 0);
  const std::string method = params.has(1) ? params.text(1) : "common";
  if (method != "common" && method != "ceil" && method != "floor") fail("method must be common, ceil or floor");
  const Value& number = number_input(input, "round()");
  const std::int64_t precision = params.integer(0, 0);
  if (method == "common") return round_to(number, precision);
  const Value unit = calculate(Arithmetic::kPower, Value(10), Value(precision));
  const Value scaled = calculate(Arithmetic::kMultiply, number, unit);
  const double* real = scaled.real();
  const Value whole = real ? truncate(method == "ceil" ? std::ceil(*real) : std::floor(*real)) : scaled;
  return calculate(Arithmetic::kDivide, whole, unit);
}

Value filter_filesizeformat(Runtime&, const Value& input, const Args& args) {
  const Params params("filesizeformat", args, {"binary"}, 0);
  const auto parsed = input.is_text() ? parse_float(input.text()) : std::nullopt;
  const double bytes = parsed ? *parsed : to_double(number_input(input, "float()"));
  const bool binary = params.flag(0, false);
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) return "1 Byte";
  if (bytes < base) return Value(integer_text(truncate(bytes)) + " Bytes");
  static constexpr std::array kLetters = {'k', 'M', 'G', 'T', 'P', 'E', 'Z', 'Y'};
  double unit = base;
  std::size_t i = 0;
  for (; i + 1 < kLetters.size() && bytes >= unit * base; ++i) unit *= base;
  char buffer[400];
  std::snprintf(buffer, sizeof buffer, "%.1f ", bytes / unit);
  const char letter = binary && i == 0 ? 'K' : kLetters[i];
  return Value(std::string(buffer) + letter + (binary ? "iB" : "B"));
}

// Any value.

Value filter_default(Runtime&, const Value& input, const Args& args) {
  const Params params("default", args, {"default_value", "boolean"}, 0);
  const bool replace = input.is_undefined() || (params.flag(1, false) && !truthy(input));
  if (!replace) return input;
  return params.has(0) ? params[0] : Value("");
}

Value filter_length(Runtime& runtime, const Value& input, const Args& args) {
  const Params none("length", args, {}, 0);
  return Value::length(runtime.length(input));
}

Value filter_attr(Runtime& runtime, const Value& input, const Args& args) {
  const Params params("attr", args, {"name"}, 1);
  if (input.is_undefined()) fail(input.undefined_message());
  if (auto found = runtime.own_attribute(input, params.text(0))) return std::move(*found);
  return Value::undefined("'" + std::string(type_name(input)) + " object' has no attribute '" + params.text(0) + "'");
}

constexpr std::array kFilters = {
    Filter{"abs", filter_abs},
    Filter{"attr", filter_attr},
    Filter{"capitalize", changed<to_capitalized>},
    Filter{"center", filter_center},
    Filter{"count", filter_length},
    Filter{"d", filter_default},
    Filter{"default", filter_default},
    Filter{"e", filter_escape},
    Filter{"escape", filter_escape},
    Filter{"filesizeformat", filter_filesizeformat},
    Filter{"float", filter_float},
    Filter{"forceescape", filter_forceescape},
    Filter{"format", filter_format},
    Filter{"indent", filter_indent},
    Filter{"int", filter_int},
    Filter{"length", filter_length},
    Filter{"lower", changed<to_lower>},
    Filter{"pprint", filter_pprint},
    Filter{"replace", filter_replace},
    Filter{"round", filter_round},
    Filter{"safe", filter_safe},
    Filter{"string", filter_string},
    Filter{"title", changed<title_words>},
    Filter{"tojson", filter_tojson},
    Filter{"trim", filter_trim},
    Filter{"truncate", filter_truncate},
    Filter{"upper", changed<to_upper>},
    Filter{"urlencode", filter_urlencode},
    Filter{"wordcount", filter_wordcount},
    Filter{"xmlattr", filter_xmlattr},
};

}  // namespace

const Filter* find_filter(std::string_view name) {
  const auto found = std::find_if(kFilters.begin(), kFilters.end(), [&](const Filter& f) { return f.name == name; });
  return found == kFilters.end() ? find_sequence_filter(name) : &*found;
}

}  // namespace octavo::jinja
