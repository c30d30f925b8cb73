// The values a chat template computes with: Python's, as far as templates see them.
//
// Containers never change once made, so values are shared freely and cannot form cycles; the few objects with state
// (namespaces, loops) are objects of jinja_objects.h. Every container knows its depth and its weight (nodes and text
// below it): nothing deeper than kMaxValueDepth or heavier than kMaxValueWeight can exist, so any walk over a value is
// bounded and its cost is known before it starts.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace octavo::jinja {

/// A template that cannot be rendered. Thrown inside the engine only; ChatTemplate turns it into an Error.
struct Failure {
  std::string message;
  bool by_template = false;  // from raise_exception: the message is the template author's
};
[[noreturn]] void fail(std::string message);

inline constexpr std::uint32_t kMaxValueDepth = 256;
inline constexpr std::uint64_t kMaxValueWeight = 1U << 25;
inline constexpr std::size_t kMaxTextBytes = 64U << 20;

class Value;
struct Big;  // an integer beyond 64 bits, see jinja_number.h
struct List;
struct Tuple;
class Dict;
class Object;

struct None {
  friend bool operator==(None, None) = default;
};

/// Prints as nothing; any other use fails with `message`.
struct Undefined {
  std::string message;
};

/// UTF-8. `markup` is set by the escape filters: such text escapes what is added to it.
struct Text {
  std::string bytes;
  bool markup = false;
};

using BigPtr = std::shared_ptr<const Big>;
using ListPtr = std::shared_ptr<const List>;
using TuplePtr = std::shared_ptr<const Tuple>;
using DictPtr = std::shared_ptr<const Dict>;
using ObjectPtr = std::shared_ptr<Object>;

class Value {
 public:
  Value() : state_(None{}) {}
  Value(bool value) : state_(value) {}                        // NOLINT: implicit by design, as are the next ones
  Value(std::int64_t value) : state_(value) {}                // NOLINT
  Value(int value) : state_(std::int64_t{value}) {}           // NOLINT
  Value(double value) : state_(value) {}                      // NOLINT
  Value(BigPtr value) : state_(std::move(value)) {}           // NOLINT
  Value(std::string text, bool markup = false);               // NOLINT
  Value(const char* text) : Value(std::string(text)) {}       // NOLINT
  Value(std::string_view text) : Value(std::string(text)) {}  // NOLINT
  Value(ListPtr value) : state_(std::move(value)) {}          // NOLINT
  Value(TuplePtr value) : state_(std::move(value)) {}         // NOLINT
  Value(DictPtr value) : state_(std::move(value)) {}          // NOLINT
  Value(ObjectPtr value) : state_(std::move(value)) {}        // NOLINT
  template <class T>
  requires std::is_base_of_v<Object, T> Value(std::shared_ptr<T> value)
      : state_(ObjectPtr(std::move(value))) {}  // NOLINT

  [[nodiscard]] static Value undefined(std::string message);
  [[nodiscard]] static Value list(std::vector<Value> items);
  [[nodiscard]] static Value tuple(std::vector<Value> items, bool is_group = false);
  [[nodiscard]] static Value dict(Dict entries);
  [[nodiscard]] static Value length(std::size_t n) { return Value(static_cast<std::int64_t>(n)); }

  [[nodiscard]] bool is_none() const { return std::holds_alternative<None>(state_); }
  [[nodiscard]] bool is_undefined() const { return std::holds_alternative<UndefinedPtr>(state_); }
  [[nodiscard]] bool is_bool() const { return std::holds_alternative<bool>(state_); }
  [[nodiscard]] bool is_float() const { return std::holds_alternative<double>(state_); }
  /// Python's int, of which bool is a kind.
  [[nodiscard]] bool is_integer() const {
    return is_bool() || std::holds_alternative<std::int64_t>(state_) || std::holds_alternative<BigPtr>(state_);
  }
  [[nodiscard]] bool is_number() const { return is_integer() || is_float(); }
  [[nodiscard]] bool is_text() const { return std::holds_alternative<TextPtr>(state_); }
  [[nodiscard]] bool is_markup() const { return is_text() && std::get<TextPtr>(state_)->markup; }

  // The part asked for, or nullptr if the value is of another type.
  [[nodiscard]] const bool* boolean() const { return std::get_if<bool>(&state_); }
  [[nodiscard]] const std::int64_t* small() const { return std::get_if<std::int64_t>(&state_); }
  [[nodiscard]] const double* real() const { return std::get_if<double>(&state_); }
  [[nodiscard]] const Big* big() const { return pointee<BigPtr>(); }
  [[nodiscard]] const List* list() const { return pointee<ListPtr>(); }
  [[nodiscard]] const Tuple* tuple() const { return pointee<TuplePtr>(); }
  [[nodiscard]] const Dict* dict() const { return pointee<DictPtr>(); }
  [[nodiscard]] Object* object() const {
    const auto* held = std::get_if<ObjectPtr>(&state_);
    return held ? held->get() : nullptr;
  }
  template <class T>
  [[nodiscard]] T* object_as() const {
    return dynamic_cast<T*>(object());
  }
  /// The items of a list or tuple, or nullptr.
  [[nodiscard]] const std::vector<Value>* items() const;

  [[nodiscard]] const std::string& text() const { return std::get<TextPtr>(state_)->bytes; }  // only if is_text()
  [[nodiscard]] const std::string& undefined_message() const { return std::get<UndefinedPtr>(state_)->message; }

  [[nodiscard]] std::uint32_t depth() const;
  [[nodiscard]] std::uint64_t weight() const;
  /// The same object, or an equal scalar: Python's `is`.
  [[nodiscard]] bool same_as(const Value& other) const;

 private:
  using UndefinedPtr = std::shared_ptr<const Undefined>;
  using TextPtr = std::shared_ptr<const Text>;
  using State = std::variant<None, bool, std::int64_t, double, UndefinedPtr, BigPtr, TextPtr, ListPtr, TuplePtr,
                             DictPtr, ObjectPtr>;
  template <class Ptr>
  [[nodiscard]] typename Ptr::element_type* pointee() const {
    const auto* held = std::get_if<Ptr>(&state_);
    return held ? held->get() : nullptr;
  }

  State state_;
};

/// Depth and weight of a container, kept as items are added.
struct Extent {
  std::uint32_t depth = 1;
  std::uint64_t weight = 1;
  void add(const Value& child);
};

struct List {
  std::vector<Value> items;
  Extent extent;
};
struct Tuple {
  std::vector<Value> items;
  Extent extent;
  bool is_group = false;  // made by groupby: its items are also called grouper and list
};

/// Keeps insertion order; a key set again keeps its place.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;
  void set(Value key, Value value);  // fails for an unhashable key
  [[nodiscard]] const Value* find(const Value& key) const;
  [[nodiscard]] const Value* find(std::string_view key) const;
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] const Extent& extent() const { return extent_; }

 private:
  template <class Matches>
  [[nodiscard]] const Entry* lookup(std::size_t hash, Matches&& matches) const;
  std::vector<Entry> entries_;
  std::unordered_multimap<std::size_t, std::size_t> index_;  // hash -> place; only for more than a few entries
  Extent extent_;
};

/// Python's name of the type, as its error messages give it.
[[nodiscard]] std::string_view type_name(const Value& value);
[[nodiscard]] bool truthy(const Value& value);
[[nodiscard]] bool equal(const Value& a, const Value& b);
/// a < b; fails for types without an order.
[[nodiscard]] bool less(const Value& a, const Value& b, std::string_view op = "<");
[[nodiscard]] bool hashable(const Value& value);
/// str() and repr().
[[nodiscard]] std::string str(const Value& value);
[[nodiscard]] std::string repr(const Value& value);
void append_repr(const Value& value, std::string& out);
void append_text_repr(std::string_view text, std::string& out);

}  // namespace octavo::jinja
