// Values that are more than data: functions, namespaces, ranges, iterators and the views of a dict.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_runtime.h"
#include "text/jinja_value.h"

namespace octavo::jinja {

class Object {
 public:
  virtual ~Object() = default;
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  [[nodiscard]] virtual std::string_view type_name() const = 0;
  virtual void append_repr(std::string& out) const;
  [[nodiscard]] virtual bool truthy() const { return true; }
  [[nodiscard]] virtual bool equals(const Object& other) const { return this == &other; }
  [[nodiscard]] virtual std::optional<std::size_t> size() const { return std::nullopt; }
  [[nodiscard]] virtual bool iterable() const { return false; }
  [[nodiscard]] virtual std::vector<Value> iterate() { return {}; }
  [[nodiscard]] virtual std::optional<Value> attribute(Runtime&, std::string_view) { return std::nullopt; }
  [[nodiscard]] virtual bool callable() const { return false; }
  [[nodiscard]] virtual Value call(Runtime&, const Args&) { return {}; }

  [[nodiscard]] std::uint32_t depth() const { return extent_.depth; }
  [[nodiscard]] std::uint64_t weight() const { return extent_.weight; }

 protected:
  Extent extent_;
};

/// A function of the environment, or a method bound to its object.
class Function final : public Object {
 public:
  using Body = std::function<Value(Runtime&, const Args&)>;
  Function(std::string_view name, Body body) : name_(name), body_(std::move(body)) {}
  Function(std::string_view name, Body body, const Value& self) : Function(name, std::move(body)) { extent_.add(self); }
  [[nodiscard]] std::string_view type_name() const override { return "builtin_function_or_method"; }
  void append_repr(std::string& out) const override;
  [[nodiscard]] bool callable() const override { return true; }
  [[nodiscard]] Value call(Runtime& runtime, const Args& args) override { return body_(runtime, args); }

 private:
  std::string name_;
  Body body_;
};

/// The one thing a template can change: {% set ns.name = value %}.
class Namespace final : public Object {
 public:
  explicit Namespace(Dict attributes) : attributes_(std::move(attributes)) {}
  [[nodiscard]] std::string_view type_name() const override { return "jinja2.utils.Namespace"; }
  void append_repr(std::string& out) const override;
  [[nodiscard]] std::optional<Value> attribute(Runtime&, std::string_view name) override;
  void set(std::string_view name, Value value) { attributes_.set(Value(name), std::move(value)); }
  void clear() { attributes_ = Dict(); }

 private:
  Dict attributes_;
};

class Range final : public Object {
 public:
  static constexpr std::uint64_t kMaxItems = 100'000;
  Range(std::int64_t start, std::int64_t stop, std::int64_t step);  // fails for step 0 or too many items
  [[nodiscard]] std::string_view type_name() const override { return "range"; }
  void append_repr(std::string& out) const override;
  [[nodiscard]] bool truthy() const override { return count_ != 0; }
  [[nodiscard]] bool equals(const Object& other) const override;
  [[nodiscard]] std::optional<std::size_t> size() const override { return count_; }
  [[nodiscard]] bool iterable() const override { return true; }
  [[nodiscard]] std::vector<Value> iterate() override;
  [[nodiscard]] std::optional<Value> attribute(Runtime&, std::string_view name) override;
  [[nodiscard]] Value at(std::size_t i) const { return start_ + static_cast<std::int64_t>(i) * step_; }
  [[nodiscard]] std::int64_t start() const { return start_; }
  [[nodiscard]] std::int64_t step() const { return step_; }

 private:
  std::int64_t start_, stop_, step_;
  std::size_t count_ = 0;
};

/// What lazy filters give: it can be walked through once, and has no length. A failure on the way is met when the
/// walk gets there, not before.
class Iterator final : public Object {
 public:
  explicit Iterator(std::vector<Value> items, std::string_view type = "generator");
  Iterator(std::vector<Value> items, Failure failure) : Iterator(std::move(items)) { failure_ = std::move(failure); }
  [[nodiscard]] std::string_view type_name() const override { return type_; }
  [[nodiscard]] bool iterable() const override { return true; }
  [[nodiscard]] std::vector<Value> iterate() override;
  /// The next item, or nullopt at the end.
  [[nodiscard]] std::optional<Value> next();

 private:
  std::vector<Value> items_;
  std::size_t at_ = 0;
  std::optional<Failure> failure_;
  std::string_view type_;
};

/// keys(), values() or items() of a dict.
class DictView final : public Object {
 public:
  enum class Kind : std::uint8_t { kKeys, kValues, kItems };
  DictView(Value dict, Kind kind);
  [[nodiscard]] std::string_view type_name() const override;
  void append_repr(std::string& out) const override;
  [[nodiscard]] bool truthy() const override { return dict_.dict()->size() != 0; }
  [[nodiscard]] std::optional<std::size_t> size() const override { return dict_.dict()->size(); }
  [[nodiscard]] bool iterable() const override { return true; }
  [[nodiscard]] std::vector<Value> iterate() override { return items(); }

 private:
  [[nodiscard]] std::vector<Value> items() const;
  Value dict_;
  Kind kind_;
};

/// cycler(a, b, ...): next() gives them in turn.
class Cycler final : public Object, public std::enable_shared_from_this<Cycler> {
 public:
  explicit Cycler(std::vector<Value> items);
  [[nodiscard]] std::string_view type_name() const override { return "jinja2.utils.Cycler"; }
  [[nodiscard]] std::optional<Value> attribute(Runtime&, std::string_view name) override;

 private:
  std::vector<Value> items_;
  std::size_t at_ = 0;
};

/// joiner(sep): empty on the first call, then sep.
class Joiner final : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) { extent_.add(separator_); }
  [[nodiscard]] std::string_view type_name() const override { return "jinja2.utils.Joiner"; }
  [[nodiscard]] bool callable() const override { return true; }
  [[nodiscard]] Value call(Runtime&, const Args& args) override;

 private:
  Value separator_;
  bool used_ = false;
};

}  // namespace octavo::jinja
