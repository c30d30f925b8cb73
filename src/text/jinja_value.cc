#include "text/jinja_value.h"

#include <algorithm>
#include <functional>

#include "text/jinja_number.h"
#include "text/jinja_objects.h"
#include "text/jinja_unicode.h"

namespace octavo::jinja {
namespace {

constexpr std::size_t kIndexFrom = 12;  // below, a linear search is faster than hashing
constexpr std::size_t kBytesPerWeight = 16;

std::size_t hash_text(std::string_view text) { return std::hash<std::string_view>{}(text); }

std::size_t hash_of(const Value& value) {
  if (value.is_text()) return hash_text(value.text());
  if (value.is_number()) return hash_number(value);
  if (value.is_none()) return 0x9e3779b9;
  if (value.is_undefined()) return 1;
  if (const Tuple* tuple = value.tuple()) {
    std::size_t hash = tuple->items.size();
    for (const Value& item : tuple->items) hash = hash * 1000003 ^ hash_of(item);
    return hash;
  }
  if (value.object()) return std::hash<const void*>{}(value.object());
  fail("unhashable type: '" + std::string(type_name(value)) + "'");
}

bool equal_items(const std::vector<Value>& a, const std::vector<Value>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), equal);
}

bool equal_dicts(const Dict& a, const Dict& b) {
  if (a.size() != b.size()) return false;
  return std::all_of(a.entries().begin(), a.entries().end(), [&](const Dict::Entry& entry) {
    const Value* other = b.find(entry.first);
    return other && equal(entry.second, *other);
  });
}

void append_items(const std::vector<Value>& items, std::string& out) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i) out += ", ";
    append_repr(items[i], out);
  }
}

void append_escape(char32_t c, std::string& out) {
  static constexpr char kDigits[] = "0123456789abcdef";
  const int width = c < 0x100 ? 2 : c < 0x10000 ? 4 : 8;
  out += width == 2 ? "\\x" : width == 4 ? "\\u" : "\\U";
  for (int shift = 4 * (width - 1); shift >= 0; shift -= 4) out += kDigits[(c >> shift) & 15];
}

}  // namespace

void fail(std::string message) { throw Failure{std::move(message)}; }

Value::Value(std::string text, bool markup) {
  if (text.size() > kMaxTextBytes) fail("a text grew beyond " + std::to_string(kMaxTextBytes >> 20) + " MiB");
  state_ = std::make_shared<const Text>(Text{std::move(text), markup});
}

Value Value::undefined(std::string message) {
  Value value;
  value.state_ = std::make_shared<const Undefined>(Undefined{std::move(message)});
  return value;
}

Value Value::list(std::vector<Value> items) {
  Extent extent;
  for (const Value& item : items) extent.add(item);
  return Value(std::make_shared<const List>(List{std::move(items), extent}));
}

Value Value::tuple(std::vector<Value> items, bool is_group) {
  Extent extent;
  for (const Value& item : items) extent.add(item);
  return Value(std::make_shared<const Tuple>(Tuple{std::move(items), extent, is_group}));
}

Value Value::dict(Dict entries) { return Value(std::make_shared<const Dict>(std::move(entries))); }

const std::vector<Value>* Value::items() const {
  if (const List* held = list()) return &held->items;
  if (const Tuple* held = tuple()) return &held->items;
  return nullptr;
}

std::uint32_t Value::depth() const {
  if (const List* held = list()) return held->extent.depth;
  if (const Tuple* held = tuple()) return held->extent.depth;
  if (const Dict* held = dict()) return held->extent().depth;
  if (const Object* held = object()) return held->depth();
  return 0;
}

std::uint64_t Value::weight() const {
  if (is_text()) return 1 + text().size() / kBytesPerWeight;
  if (const List* held = list()) return held->extent.weight;
  if (const Tuple* held = tuple()) return held->extent.weight;
  if (const Dict* held = dict()) return held->extent().weight;
  if (const Object* held = object()) return held->weight();
  return 1;
}

bool Value::same_as(const Value& other) const {
  if (state_.index() != other.state_.index()) return false;
  if (is_text()) return text() == other.text();
  if (is_undefined()) return true;
  if (const Big* held = big()) return equal(*this, other) && held;
  return state_ == other.state_;
}

void Extent::add(const Value& child) {
  depth = std::max(depth, child.depth() + 1);
  weight += child.weight();
  if (depth > kMaxValueDepth) fail("a value nests deeper than " + std::to_string(kMaxValueDepth) + " levels");
  if (weight > kMaxValueWeight) fail("a value holds more than " + std::to_string(kMaxValueWeight) + " items");
}

template <class Matches>
const Dict::Entry* Dict::lookup(std::size_t hash, Matches&& matches) const {
  if (index_.empty()) {
    const auto found = std::find_if(entries_.begin(), entries_.end(), matches);
    return found == entries_.end() ? nullptr : &*found;
  }
  const auto [first, last] = index_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (matches(entries_[it->second])) return &entries_[it->second];
  }
  return nullptr;
}

const Value* Dict::find(const Value& key) const {
  const Entry* entry = lookup(hash_of(key), [&](const Entry& candidate) { return equal(candidate.first, key); });
  return entry ? &entry->second : nullptr;
}

const Value* Dict::find(std::string_view key) const {
  const Entry* entry = lookup(hash_text(key), [&](const Entry& candidate) {
    return candidate.first.is_text() && candidate.first.text() == key;
  });
  return entry ? &entry->second : nullptr;
}

void Dict::set(Value key, Value value) {
  extent_.add(value);
  if (const Value* present = find(key)) {
    *const_cast<Value*>(present) = std::move(value);  // our own entry; find() is const for readers' sake
    return;
  }
  extent_.add(key);
  entries_.emplace_back(std::move(key), std::move(value));
  if (entries_.size() < kIndexFrom) return;
  for (std::size_t place = index_.size(); place < entries_.size(); ++place) {
    index_.emplace(hash_of(entries_[place].first), place);
  }
}

std::string_view type_name(const Value& value) {
  if (value.is_none()) return "NoneType";
  if (value.is_bool()) return "bool";
  if (value.is_integer()) return "int";
  if (value.is_float()) return "float";
  if (value.is_undefined()) return "Undefined";
  if (value.is_text()) return value.is_markup() ? "Markup" : "str";
  if (value.list()) return "list";
  if (value.tuple()) return "tuple";
  if (value.dict()) return "dict";
  return value.object()->type_name();
}

bool truthy(const Value& value) {
  if (const bool* b = value.boolean()) return *b;
  if (const std::int64_t* i = value.small()) return *i != 0;
  if (const double* d = value.real()) return *d != 0.0;
  if (value.is_text()) return !value.text().empty();
  if (const auto* items = value.items()) return !items->empty();
  if (const Dict* dict = value.dict()) return dict->size() != 0;
  if (const Object* object = value.object()) return object->truthy();
  return value.big() != nullptr;  // None and undefined are false, a big integer is never zero
}

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == Order::kEqual;
  if (a.is_text() && b.is_text()) return a.text() == b.text();
  if (a.list() && b.list()) return equal_items(a.list()->items, b.list()->items);
  if (a.tuple() && b.tuple()) return equal_items(a.tuple()->items, b.tuple()->items);
  if (a.dict() && b.dict()) return equal_dicts(*a.dict(), *b.dict());
  if (a.object() && b.object()) return a.object()->equals(*b.object());
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

bool less(const Value& a, const Value& b, std::string_view op) {
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == Order::kLess;
  if (a.is_text() && b.is_text()) return a.text() < b.text();  // UTF-8 sorts as code points do
  if ((a.list() && b.list()) || (a.tuple() && b.tuple())) {
    const auto [x, y] =
        std::mismatch(a.items()->begin(), a.items()->end(), b.items()->begin(), b.items()->end(), equal);
    if (y == b.items()->end()) return false;
    return x == a.items()->end() || less(*x, *y, op);
  }
  if (a.is_undefined()) fail(a.undefined_message());
  if (b.is_undefined()) fail(b.undefined_message());
  fail("'" + std::string(op) + "' not supported between instances of '" + std::string(type_name(a)) + "' and '" +
       std::string(type_name(b)) + "'");
}

bool hashable(const Value& value) {
  if (const Tuple* tuple = value.tuple()) return std::all_of(tuple->items.begin(), tuple->items.end(), hashable);
  return !value.list() && !value.dict();
}

void append_text_repr(std::string_view text, std::string& out) {
  const bool doubled = text.find('\'') != text.npos && text.find('"') == text.npos;
  const char quote = doubled ? '"' : '\'';
  out += quote;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(text, at);
    if (c == static_cast<unsigned char>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      out.append(text, begin, at - begin);
    } else {
      append_escape(c, out);
    }
  }
  out += quote;
}

void append_repr(const Value& value, std::string& out) {
  if (out.size() > kMaxTextBytes) fail("a text grew beyond " + std::to_string(kMaxTextBytes >> 20) + " MiB");
  if (value.is_text()) {
    if (value.is_markup()) out += "Markup(";
    append_text_repr(value.text(), out);
    if (value.is_markup()) out += ')';
  } else if (const bool* b = value.boolean()) {
    out += *b ? "True" : "False";
  } else if (value.is_integer()) {
    out += integer_text(value);
  } else if (const double* d = value.real()) {
    out += float_text(*d);
  } else if (const List* list = value.list()) {
    out += '[';
    append_items(list->items, out);
    out += ']';
  } else if (const Tuple* tuple = value.tuple()) {
    out += '(';
    append_items(tuple->items, out);
    out += tuple->items.size() == 1 ? ",)" : ")";
  } else if (const Dict* dict = value.dict()) {
    out += '{';
    for (std::size_t i = 0; i < dict->size(); ++i) {
      if (i) out += ", ";
      append_repr(dict->entries()[i].first, out);
      out += ": ";
      append_repr(dict->entries()[i].second, out);
    }
    out += '}';
  } else if (Object* object = value.object()) {
    object->append_repr(out);
  } else {
    out += value.is_none() ? "None" : "Undefined";
  }
}

std::string repr(const Value& value) {
  std::string out;
  append_repr(value, out);
  return out;
}

std::string str(const Value& value) {
  if (value.is_text()) return value.text();
  if (value.is_undefined()) return "";
  return repr(value);
}

}  // namespace octavo::jinja
