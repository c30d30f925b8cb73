// JSON lines in, JSON lines out: reading one object's fields with clear errors, and the loop over lines.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <istream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "octavo/ids.h"
#include "octavo/result.h"

namespace octavo {

using Json = nlohmann::ordered_json;

/// Parses one JSON object; says where it goes wrong. Bounded in depth.
[[nodiscard]] Result<Json> parse_object(const std::string& line);

/// One line of text: invalid UTF-8 as U+FFFD, no escapes beyond JSON's own.
[[nodiscard]] std::string dump(const Json& value);

/// Reads typed fields of one JSON object. read() is true if the field is there (null counts as absent); a wrong type
/// or value is remembered, and the first one is what error() returns.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {}

  bool read(const char* name, std::string& target);
  bool read(const char* name, bool& target);
  bool read(const char* name, float& target);
  bool read(const char* name, std::vector<TokenId>& target);
  bool read(const char* name, std::vector<std::string>& target);  // a string counts as a list of one
  template <std::integral T>
  bool read(const char* name, T& target);
  template <class T>
  bool read(const char* name, std::optional<T>& target);

  [[nodiscard]] Result<> error() const;

 private:
  const Json* find(const char* name) const;
  bool refuse(const char* name, const std::string& expected);

  const Json& object_;
  std::optional<Error> error_;
};

/// Answers every line of `in` with one line of `out`, in order, flushed; a line that fails is answered {"error"}.
void answer_lines(std::istream& in, std::ostream& out, const std::function<Result<Json>(const Json&)>& answer);

template <std::integral T>
bool Fields::read(const char* name, T& target) {
  const Json* value = find(name);
  if (value == nullptr) return false;
  const bool fits = value->is_number_unsigned()  ? std::in_range<T>(value->get<std::uint64_t>())
                    : value->is_number_integer() ? std::in_range<T>(value->get<std::int64_t>())
                                                 : false;
  if (!fits) {
    return refuse(name, "an integer from " + std::to_string(std::numeric_limits<T>::min()) + " to " +
                            std::to_string(std::numeric_limits<T>::max()));
  }
  target = value->get<T>();
  return true;
}

template <class T>
bool Fields::read(const char* name, std::optional<T>& target) {
  T value{};
  if (!read(name, value)) return false;
  target = value;
  return true;
}

}  // namespace octavo
