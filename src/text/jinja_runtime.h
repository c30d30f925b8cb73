// What a rendering shares: its budget, the clock, and Python's protocols (attribute, item, iteration, call).
#pragma once
#include <chrono>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_value.h"

namespace octavo::jinja {

class Namespace;

inline constexpr std::uint64_t kMaxSteps = 5'000'000;

/// The evaluated arguments of a call.
struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// Arguments sorted into the parameters of `function`; fails as Python does for missing, doubled or unknown ones.
class Params {
 public:
  Params(std::string_view function, const Args& args, std::initializer_list<std::string_view> names,
         std::size_t required);
  [[nodiscard]] bool has(std::size_t i) const { return given_[i] != nullptr; }
  [[nodiscard]] const Value& operator[](std::size_t i) const;  // None if not given
  [[nodiscard]] bool flag(std::size_t i, bool otherwise) const { return has(i) ? truthy((*this)[i]) : otherwise; }
  /// Fails unless an integer.
  [[nodiscard]] std::int64_t integer(std::size_t i, std::int64_t otherwise) const;
  /// Fails unless a text.
  [[nodiscard]] const std::string& text(std::size_t i) const;

 private:
  std::vector<const Value*> given_;
};

class Runtime {
 public:
  explicit Runtime(std::chrono::local_seconds time) : now(time) {}
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

  /// Spends steps of the budget; fails when it is used up.
  void charge(std::uint64_t steps);

  /// object.name and object[key] as Jinja finds them: undefined if absent, a failure for an undefined object.
  [[nodiscard]] Value attribute(const Value& object, std::string_view name);
  [[nodiscard]] Value item(const Value& object, const Value& key);
  /// The attribute itself (a method, a field of an object), without looking among a dict's keys.
  [[nodiscard]] std::optional<Value> own_attribute(const Value& object, std::string_view name);
  /// Fails for values that cannot be iterated over.
  [[nodiscard]] std::vector<Value> iterate(const Value& value);
  [[nodiscard]] std::size_t length(const Value& value);
  [[nodiscard]] Value call(const Value& callee, const Args& args);
  /// str().
  [[nodiscard]] std::string text(const Value& value);

  /// Namespaces can hold each other in circles: emptied when the rendering ends.
  void remember(std::shared_ptr<Namespace> made);

  const std::chrono::local_seconds now;

 private:
  std::uint64_t steps_ = 0;
  std::vector<std::shared_ptr<Namespace>> namespaces_;
};

[[nodiscard]] bool iterable(const Value& value);
[[nodiscard]] std::optional<std::size_t> size_of(const Value& value);
[[nodiscard]] bool callable(const Value& value);

}  // namespace octavo::jinja
