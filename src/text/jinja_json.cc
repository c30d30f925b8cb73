#include "text/jinja_json.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "text/jinja_number.h"
#include "text/jinja_unicode.h"

namespace octavo::jinja {
namespace {

/// Builds values as the parser meets them.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return add(Value()); }
  bool boolean(bool value) override { return add(Value(value)); }
  bool number_integer(number_integer_t value) override { return add(Value(value)); }
  bool number_unsigned(number_unsigned_t value) override { return add(from_unsigned(value)); }
  bool number_float(number_float_t value, const string_t& text) override {
    if (text.find_first_of(".eE") != text.npos) return add(Value(value));
    const auto integer = parse_integer(text, 10);  // too long for 64 bits
    if (!integer) fail("a number in the context has more digits than the limit");
    return add(*integer);
  }
  bool string(string_t& text) override { return add(Value(std::move(text))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(true); }
  bool start_array(std::size_t) override { return open(false); }
  bool key(string_t& text) override {
    open_.back().key = std::move(text);
    return true;
  }
  bool end_object() override { return close(Value::dict(std::move(open_.back().dict))); }
  bool end_array() override { return close(Value::list(std::move(open_.back().items))); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    fail("the context is not valid JSON: error at byte " + std::to_string(position));
  }

  Value result;

 private:
  struct Level {
    bool is_dict;
    Dict dict;
    std::vector<Value> items;
    std::string key;
  };

  bool open(bool is_dict) {
    if (open_.size() >= kMaxValueDepth) {
      fail("the context nests deeper than " + std::to_string(kMaxValueDepth) + " levels");
    }
    open_.push_back({is_dict, {}, {}, {}});
    return true;
  }
  bool close(Value value) {
    open_.pop_back();
    return add(std::move(value));
  }
  bool add(Value value) {
    if (open_.empty()) {
      result = std::move(value);
    } else if (open_.back().is_dict) {
      open_.back().dict.set(Value(std::move(open_.back().key)), std::move(value));
    } else {
      open_.back().items.push_back(std::move(value));
    }
    return true;
  }

  std::vector<Level> open_;
};

class Writer {
 public:
  explicit Writer(const JsonStyle& style) : style_(style) {}

  void write(const Value& value) {
    if (out.size() > kMaxTextBytes) fail("a text grew beyond the limit");
    if (value.is_text()) {
      string(value.text());
    } else if (value.is_none()) {
      out += "null";
    } else if (const bool* b = value.boolean()) {
      out += *b ? "true" : "false";
    } else if (value.is_integer()) {
      out += integer_text(value);
    } else if (const double* d = value.real()) {
      out += real(*d);
    } else if (const auto* items = value.items()) {
      list(*items);
    } else if (const Dict* held = value.dict()) {
      dict(*held);
    } else {
      fail("Object of type " + std::string(type_name(value)) + " is not JSON serializable");
    }
  }

  std::string out;

 private:
  static std::string real(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return float_text(value);
  }

  void line(std::size_t level) {
    if (!style_.indent) return;
    out += '\n';
    for (std::size_t i = 0; i < level; ++i) out += *style_.indent;
    if (out.size() > kMaxTextBytes) fail("a text grew beyond the limit");
  }

  void list(const std::vector<Value>& items) {
    if (items.empty()) {
      out += "[]";
      return;
    }
    out += '[';
    ++level_;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i) out += style_.item_separator;
      line(level_);
      write(items[i]);
    }
    line(--level_);
    out += ']';
  }

  void dict(const Dict& held) {
    if (held.size() == 0) {
      out += "{}";
      return;
    }
    std::vector<Dict::Entry> entries = held.entries();
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(),
                       [](const Dict::Entry& a, const Dict::Entry& b) { return less(a.first, b.first); });
    }
    out += '{';
    ++level_;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i) out += style_.item_separator;
      line(level_);
      key(entries[i].first);
      out += style_.key_separator;
      write(entries[i].second);
    }
    line(--level_);
    out += '}';
  }

  void key(const Value& value) {
    if (value.is_text()) {
      string(value.text());
    } else if (value.is_number() || value.is_none()) {
      out += '"';
      write(value);
      out += '"';
    } else {
      fail("keys must be str, int, float, bool or None, not " + std::string(type_name(value)));
    }
  }

  void unit(unsigned code) {
    char buffer[8];
    std::snprintf(buffer, sizeof buffer, "\\u%04x", code & 0xffffU);
    out += buffer;
  }

  void string(std::string_view text) {
    out += '"';
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = at;
      const char32_t c = next_code_point(text, at);
      constexpr std::string_view kPlain = "\"\\\n\r\t\f\b", kEscaped = "\"\\nrtfb";
      if (const std::size_t known = c < 0x80 ? kPlain.find(static_cast<char>(c)) : kPlain.npos; known != kPlain.npos) {
        out += '\\';
        out += kEscaped[known];
      } else if (c < 0x20 || (style_.ensure_ascii && c > 0x7e && c < 0x10000)) {
        unit(static_cast<unsigned>(c));
      } else if (style_.ensure_ascii && c > 0xffff) {
        unit(0xd800U + static_cast<unsigned>((c - 0x10000) >> 10));
        unit(0xdc00U + static_cast<unsigned>((c - 0x10000) & 0x3ff));
      } else {
        out.append(text, begin, at - begin);
      }
    }
    out += '"';
  }

  const JsonStyle& style_;
  std::size_t level_ = 0;
};

}  // namespace

Value parse_json(std::string_view text) {
  Builder builder;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) fail("the context is not valid JSON");
  return std::move(builder.result);
}

std::string to_json(const Value& value, const JsonStyle& style) {
  Writer writer(style);
  writer.write(value);
  return std::move(writer.out);
}

}  // namespace octavo::jinja
