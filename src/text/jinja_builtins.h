// The environment: filters, tests, methods of Python's types, and global functions.
#pragma once
#include <optional>
#include <string_view>

#include "text/jinja_runtime.h"
#include "text/jinja_value.h"

namespace octavo::jinja {

struct Filter {
  std::string_view name;
  Value (*apply)(Runtime&, const Value& input, const Args&);
};
struct Test {
  std::string_view name;
  bool (*holds)(Runtime&, const Value& input, const Args&);
};
struct Method {
  std::string_view name;
  Value (*call)(Runtime&, const Value& self, const Args&);
};

/// Null if there is none of that name.
[[nodiscard]] const Filter* find_filter(std::string_view name);
[[nodiscard]] const Filter* find_sequence_filter(std::string_view name);  // the part in jinja_sequence_filters.cc
[[nodiscard]] const Test* find_test(std::string_view name);
[[nodiscard]] const Method* find_method(const Value& self, std::string_view name);
[[nodiscard]] const Method* find_text_method(std::string_view name);
/// Methods that would change a list or dict, which a template may not.
[[nodiscard]] bool changes_in_place(const Value& self, std::string_view name);
/// range, dict, namespace, raise_exception, strftime_now and the like.
[[nodiscard]] std::optional<Value> find_function(std::string_view name);

// Shared by filters, tests and methods of text.
/// str.replace(); a negative `limit` is none.
[[nodiscard]] std::string replaced(Runtime& runtime, std::string_view text, std::string_view from, std::string_view to,
                                   std::int64_t limit);
[[nodiscard]] bool is_all_lower(std::string_view text);  // str.islower()
[[nodiscard]] bool is_all_upper(std::string_view text);

}  // namespace octavo::jinja
