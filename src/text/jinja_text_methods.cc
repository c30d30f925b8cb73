// The methods of str.
#include <algorithm>
#include <array>

#include "text/jinja_builtins.h"
#include "text/jinja_format.h"
#include "text/jinja_number.h"
#include "text/jinja_unicode.h"

namespace octavo::jinja {
namespace {

/// Text made from `self` stays markup if `self` was.
Value derived(Runtime& runtime, const Value& self, std::string text) {
  runtime.charge(text.size() / 16);
  return Value(std::move(text), self.is_markup());
}

template <std::string (*change)(std::string_view)>
Value changed(Runtime& runtime, const Value& self, const Args& args) {
  const Params none("a case method", args, {}, 0);
  runtime.charge(self.text().size() / 4);
  return derived(runtime, self, change(self.text()));
}

template <bool left, bool right>
Value stripped(Runtime& runtime, const Value& self, const Args& args) {
  const Params params("strip", args, {"chars"}, 0);
  const auto chars = params[0].is_none() ? std::nullopt : std::optional<std::string_view>(params.text(0));
  if (chars) runtime.charge(chars->size());
  return derived(runtime, self, std::string(strip(self.text(), chars, left, right)));
}

Value list_of(Runtime& runtime, const Value& self, const std::vector<std::string_view>& parts) {
  runtime.charge(2 * parts.size() + self.weight());
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) items.emplace_back(std::string(part), self.is_markup());
  return Value::list(std::move(items));
}

std::vector<std::string_view> split_on_space(std::string_view text, std::int64_t limit, bool from_right) {
  std::vector<std::string_view> parts;
  for (text = strip(text, std::nullopt, !from_right, from_right); !text.empty();
       text = strip(text, std::nullopt, !from_right, from_right)) {
    if (limit-- == 0) {
      parts.push_back(strip(text, std::nullopt, from_right, !from_right));
      break;
    }
    std::size_t begin = text.size(), end = 0;  // of the word at our end of the text
    if (from_right) {
      while (begin > 0) {
        std::size_t before = begin - 1;
        while (before > 0 && (static_cast<unsigned char>(text[before]) & 0xc0) == 0x80) --before;
        std::size_t after = before;
        if (is_space(next_code_point(text, after))) break;
        begin = before;
      }
      parts.push_back(text.substr(begin));
      text = text.substr(0, begin);
    } else {
      for (std::size_t at = 0; at < text.size(); end = at) {
        if (is_space(next_code_point(text, at))) break;
      }
      parts.push_back(text.substr(0, end));
      text.remove_prefix(end);
    }
  }
  return parts;
}

std::vector<std::string_view> split_on(std::string_view text, std::string_view separator, std::int64_t limit,
                                       bool from_right) {
  std::vector<std::string_view> parts;
  while (limit-- != 0) {
    const std::size_t at = from_right ? text.rfind(separator) : text.find(separator);
    if (at == text.npos) break;
    const std::string_view before = text.substr(0, at), after = text.substr(at + separator.size());
    parts.push_back(from_right ? after : before);
    text = from_right ? before : after;
  }
  parts.push_back(text);
  return parts;
}

template <bool from_right>
Value split(Runtime& runtime, const Value& self, const Args& args) {
  const Params params("split", args, {"sep", "maxsplit"}, 0);
  const std::int64_t limit = params.integer(1, -1);
  std::vector<std::string_view> parts;
  if (params[0].is_none()) {
    parts = split_on_space(self.text(), limit, from_right);
  } else {
    if (params.text(0).empty()) fail("empty separator");
    parts = split_on(self.text(), params.text(0), limit, from_right);
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return list_of(runtime, self, parts);
}

Value splitlines(Runtime& runtime, const Value& self, const Args& args) {
  const Params params("splitlines", args, {"keepends"}, 0);
  return list_of(runtime, self, split_lines(self.text(), params.flag(0, false)));
}

/// The part of the text between the optional start and end arguments, and the index where it begins.
struct Window {
  std::string_view text;
  std::size_t first;
  bool valid;  // start is not past the end
};

Window window(const Value& self, const Params& params, std::size_t start_at) {
  const std::string_view text = self.text();
  const auto size = static_cast<std::int64_t>(code_points(text));
  const auto place = [&](std::size_t i, std::int64_t otherwise) {
    const std::int64_t at = params[i].is_none() ? otherwise : params.integer(i, otherwise);
    return at < 0 ? std::max<std::int64_t>(at + size, 0) : at;
  };
  const std::int64_t start = place(start_at, 0), end = std::min(place(start_at + 1, size), size);
  if (start > end) return {"", 0, false};
  const std::size_t begin = byte_offset(text, static_cast<std::size_t>(start));
  const std::string_view rest = text.substr(begin);
  return {rest.substr(0, byte_offset(rest, static_cast<std::size_t>(end - start))), static_cast<std::size_t>(start),
          true};
}

bool matches_end(std::string_view text, const std::string& affix, bool at_start) {
  return at_start ? text.starts_with(affix) : text.ends_with(affix);
}

template <bool at_start>
Value affixed(Runtime& runtime, const Value& self, const Args& args) {
  const Params params(at_start ? "startswith" : "endswith", args, {"affix", "start", "end"}, 1);
  runtime.charge(params[0].weight());
  const Window part = window(self, params, 1);
  if (const Tuple* choices = params[0].tuple()) {
    return std::any_of(choices->items.begin(), choices->items.end(), [&](const Value& choice) {
      if (!choice.is_text()) fail("tuple for startswith or endswith must only contain str");
      return part.valid && matches_end(part.text, choice.text(), at_start);
    });
  }
  const std::string& affix = params.text(0);
  return part.valid && matches_end(part.text, affix, at_start);
}

template <bool from_right, bool must_exist>
Value find(Runtime& runtime, const Value& self, const Args& args) {
  const Params params("find", args, {"sub", "start", "end"}, 1);
  runtime.charge(self.weight());
  const std::string& wanted = params.text(0);
  const Window part = window(self, params, 1);
  const std::size_t at = !part.valid  ? std::string_view::npos
                         : from_right ? part.text.rfind(wanted)
                                      : part.text.find(wanted);
  if (at != std::string_view::npos) return Value::length(part.first + code_points(part.text.substr(0, at)));
  if (must_exist) fail("substring not found");
  return -1;
}

Value count(Runtime& runtime, const Value& self, const Args& args) {
  const Params params("count", args, {"sub", "start", "end"}, 1);
  runtime.charge(self.weight());
  const std::string& wanted = params.text(0);
  const Window part = window(self, params, 1);
  if (!part.valid) return 0;
  if (wanted.empty()) return Value::length(code_points(part.text) + 1);
  return Value::length(split_on(part.text, wanted, -1, false).size() - 1);
}

Value replace(Runtime& runtime, const Value& self, const Args& args) {
  const Params params("replace", args, {"old", "new", "count"}, 2);
  return derived(runtime, self, replaced(runtime, self.text(), params.text(0), params.text(1), params.integer(2, -1)));
}

Value join(Runtime& runtime, const Value& self, const Args& args) {
  const Params params("join", args, {"iterable"}, 1);
  std::string out;
  bool first = true;
  for (const Value& item : runtime.iterate(params[0])) {
    if (!item.is_text()) fail("join() expects texts, found " + std::string(type_name(item)));
    if (!first) out += self.text();
    first = false;
    out += item.text();
    runtime.charge((self.text().size() + item.text().size()) / 16);
    if (out.size() > kMaxTextBytes) fail("a text grew beyond the limit");
  }
  return Value(std::move(out), self.is_markup());
}

/// str.isalpha() and its like: not empty, and every character passes.
template <bool (*passes)(char32_t)>
Value all_are(Runtime& runtime, const Value& self, const Args& args) {
  const Params none("a character test", args, {}, 0);
  runtime.charge(self.weight());
  const std::string& text = self.text();
  std::size_t at = 0;
  while (at < text.size()) {
    if (!passes(next_code_point(text, at))) return false;
  }
  return !text.empty();
}

bool is_alphanumeric(char32_t c) { return is_alpha(c) || is_decimal(c) || is_digit(c) || is_numeric(c); }
bool is_ascii(char32_t c) { return c < 0x80; }

Value isascii(Runtime& runtime, const Value& self, const Args& args) {
  return self.text().empty() ? Value(true) : all_are<is_ascii>(runtime, self, args);
}

Value isprintable(Runtime& runtime, const Value& self, const Args& args) {
  return self.text().empty() ? Value(true) : all_are<is_printable>(runtime, self, args);
}

Value islower(Runtime&, const Value& self, const Args&) { return is_all_lower(self.text()); }
Value isupper(Runtime&, const Value& self, const Args&) { return is_all_upper(self.text()); }

Value istitle(Runtime&, const Value& self, const Args&) {
  bool cased_before = false, any = false;
  const std::string& text = self.text();
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    const bool starts = is_upper(c) || is_title(c);
    if (starts ? cased_before : is_lower(c) && !cased_before) return false;
    cased_before = starts || is_lower(c);
    any |= cased_before;
  }
  return any;
}

Value isidentifier(Runtime&, const Value& self, const Args&) {
  const std::string& text = self.text();
  std::size_t at = 0;
  if (text.empty() || !is_identifier_start(next_code_point(text, at))) return false;
  while (at < text.size()) {
    if (!is_identifier_part(next_code_point(text, at))) return false;
  }
  return true;
}

template <bool from_right>
Value partition(Runtime& runtime, const Value& self, const Args& args) {
  const Params params("partition", args, {"sep"}, 1);
  runtime.charge(self.weight());
  const std::string_view text = self.text(), separator = params.text(0);
  if (separator.empty()) fail("empty separator");
  const std::size_t at = from_right ? text.rfind(separator) : text.find(separator);
  if (at == text.npos) {
    return from_right ? Value::tuple({"", "", text}) : Value::tuple({text, "", ""});
  }
  return Value::tuple({text.substr(0, at), separator, text.substr(at + separator.size())});
}

enum class Side : std::uint8_t { kLeft, kRight, kBoth };

template <Side text_side>
Value justified(Runtime& runtime, const Value& self, const Args& args) {
  const Params params("justify", args, {"width", "fillchar"}, 1);
  const std::string fill = params.has(1) ? params.text(1) : " ";
  if (code_points(fill) != 1) fail("The fill character must be exactly one character long");
  const auto size = static_cast<std::int64_t>(code_points(self.text()));
  const std::int64_t missing = std::max<std::int64_t>(params.integer(0, 0) - size, 0);
  if (missing > static_cast<std::int64_t>(kMaxTextBytes / 4)) fail("a text grew beyond the limit");
  runtime.charge(static_cast<std::uint64_t>(missing) / 4);
  // When an odd number is missing, Python centres to the right in texts of odd width.
  const std::int64_t before = text_side == Side::kLeft    ? 0
                              : text_side == Side::kRight ? missing
                                                          : missing / 2 + (missing & (size + missing) & 1);
  std::string out;
  for (std::int64_t i = 0; i < before; ++i) out += fill;
  out += self.text();
  for (std::int64_t i = before; i < missing; ++i) out += fill;
  return derived(runtime, self, std::move(out));
}

Value zfill(Runtime& runtime, const Value& self, const Args& args) {
  const Params params("zfill", args, {"width"}, 1);
  const auto size = static_cast<std::int64_t>(code_points(self.text()));
  const std::int64_t missing = std::max<std::int64_t>(params.integer(0, 0) - size, 0);
  if (missing > static_cast<std::int64_t>(kMaxTextBytes)) fail("a text grew beyond the limit");
  const bool sign = self.text().starts_with('-') || self.text().starts_with('+');
  std::string out = self.text();
  out.insert(sign ? 1 : 0, static_cast<std::size_t>(missing), '0');
  return derived(runtime, self, std::move(out));
}

Value expandtabs(Runtime& runtime, const Value& self, const Args& args) {
  const Params params("expandtabs", args, {"tabsize"}, 0);
  const std::int64_t size = std::clamp<std::int64_t>(params.integer(0, 8), 0, 1000);
  std::string out;
  std::int64_t column = 0;
  for (const std::string_view character : split_characters(self.text())) {
    if (character == "\t") {
      const std::int64_t blanks = size == 0 ? 0 : size - column % size;
      out.append(static_cast<std::size_t>(blanks), ' ');
      column += blanks;
      runtime.charge(static_cast<std::uint64_t>(blanks) / 16 + 1);
    } else {
      out += character;
      column = character == "\n" || character == "\r" ? 0 : column + 1;
    }
  }
  return derived(runtime, self, std::move(out));
}

template <bool prefix>
Value removed(Runtime& runtime, const Value& self, const Args& args) {
  const Params params(prefix ? "removeprefix" : "removesuffix", args, {"affix"}, 1);
  std::string_view text = self.text();
  const std::string& affix = params.text(0);
  if (matches_end(text, affix, prefix)) {
    prefix ? text.remove_prefix(affix.size()) : text.remove_suffix(affix.size());
  }
  return derived(runtime, self, std::string(text));
}

Value format(Runtime& runtime, const Value& self, const Args& args) {
  return derived(runtime, self, format_braces(runtime, self.text(), args));
}

Value format_map(Runtime& runtime, const Value& self, const Args& args) {
  const Params params("format_map", args, {"mapping"}, 1);
  if (!params[0].dict()) fail("format_map() needs a dict");
  Args named;
  for (const auto& [key, value] : params[0].dict()->entries()) named.named.emplace_back(str(key), value);
  return derived(runtime, self, format_braces(runtime, self.text(), named));
}

constexpr std::array kMethods = {
    Method{"capitalize", changed<to_capitalized>},
    Method{"casefold", changed<to_casefold>},
    Method{"center", justified<Side::kBoth>},
    Method{"count", count},
    Method{"endswith", affixed<false>},
    Method{"expandtabs", expandtabs},
    Method{"find", find<false, false>},
    Method{"format", format},
    Method{"format_map", format_map},
    Method{"index", find<false, true>},
    Method{"isalnum", all_are<is_alphanumeric>},
    Method{"isalpha", all_are<is_alpha>},
    Method{"isascii", isascii},
    Method{"isdecimal", all_are<is_decimal>},
    Method{"isdigit", all_are<is_digit>},
    Method{"isidentifier", isidentifier},
    Method{"islower", islower},
    Method{"isnumeric", all_are<is_numeric>},
    Method{"isprintable", isprintable},
    Method{"isspace", all_are<is_space>},
    Method{"istitle", istitle},
    Method{"isupper", isupper},
    Method{"join", join},
    Method{"ljust", justified<Side::kLeft>},
    Method{"lower", changed<to_lower>},
    Method{"lstrip", stripped<true, false>},
    Method{"partition", partition<false>},
    Method{"removeprefix", removed<true>},
    Method{"removesuffix", removed<false>},
    Method{"replace", replace},
    Method{"rfind", find<true, false>},
    Method{"rindex", find<true, true>},
    Method{"rjust", justified<Side::kRight>},
    Method{"rpartition", partition<true>},
    Method{"rsplit", split<true>},
    Method{"rstrip", stripped<false, true>},
    Method{"split", split<false>},
    Method{"splitlines", splitlines},
    Method{"startswith", affixed<true>},
    Method{"strip", stripped<true, true>},
    Method{"swapcase", changed<to_swapcase>},
    Method{"title", changed<to_title>},
    Method{"upper", changed<to_upper>},
    Method{"zfill", zfill},
};

}  // namespace

const Method* find_text_method(std::string_view name) {
  const auto found = std::find_if(kMethods.begin(), kMethods.end(), [&](const Method& m) { return m.name == name; });
  return found == kMethods.end() ? nullptr : &*found;
}

std::string replaced(Runtime& runtime, std::string_view text, std::string_view from, std::string_view to,
                     std::int64_t limit) {
  std::string out;
  const auto grow = [&](std::string_view part) {
    if (out.size() + part.size() > kMaxTextBytes) fail("a text grew beyond the limit");
    out += part;
  };
  runtime.charge(text.size() / 16);
  if (from.empty()) {
    std::size_t at = 0;
    for (; limit != 0; --limit) {
      grow(to);
      runtime.charge(1 + to.size() / 16);
      if (at >= text.size()) return out;
      const std::size_t begin = at;
      (void)next_code_point(text, at);
      grow(text.substr(begin, at - begin));
    }
    grow(text.substr(at));
    return out;
  }
  for (; limit != 0; --limit) {
    const std::size_t at = text.find(from);
    if (at == text.npos) break;
    grow(text.substr(0, at));
    grow(to);
    runtime.charge(1 + to.size() / 16);
    text.remove_prefix(at + from.size());
  }
  grow(text);
  return out;
}

bool is_all_lower(std::string_view text) {
  bool any = false;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (is_upper(c) || is_title(c)) return false;
    any |= is_lower(c);
  }
  return any;
}

bool is_all_upper(std::string_view text) {
  bool any = false;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (is_lower(c) || is_title(c)) return false;
    any |= is_upper(c);
  }
  return any;
}

}  // namespace octavo::jinja
