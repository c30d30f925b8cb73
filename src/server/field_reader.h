// Reads the fields of a JSON object strictly: a wrong type or range is an error that names the field, the value and the
// limit. Absent and null fields leave the variable as it is; fields nobody asks for are ignored.
//
// The first error sticks; ask for it once, after all fields.
#pragma once
#include <cmath>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "octavo/ids.h"
#include "octavo/result.h"
#include "server/json.h"

namespace octavo {

/// The body of a request. Bounded in depth and in keys per object, so that nothing later is deep or quadratic.
[[nodiscard]] Result<Json> parse_json(std::string_view text);

/// "[1, 2, ...": the value as JSON, cut to a readable length.
[[nodiscard]] std::string shown(const Json& value);

struct Range {
  double lowest = 0;
  double highest = 0;
  bool lowest_excluded = false;
};

class FieldReader {
 public:
  /// `object` must be an object and outlive the reader.
  explicit FieldReader(const Json& object) : object_(object) {}

  /// The field's value; nullptr if it is absent or null.
  [[nodiscard]] const Json* find(const char* name) const;

  template <class Number>
  requires std::integral<Number> || std::floating_point<Number>
  void read(const char* name, Number& out, Range range) {
    if (const auto number = checked_number(name, range, std::integral<Number>)) out = static_cast<Number>(*number);
  }
  template <class Number>
  void read(const char* name, std::optional<Number>& out, Range range) {
    if (const auto number = checked_number(name, range, std::integral<Number>)) out = static_cast<Number>(*number);
  }
  void read(const char* name, bool& out);
  void read(const char* name, std::string& out);
  /// A string or a list of strings, none empty.
  void read(const char* name, std::vector<std::string>& out, std::size_t most);
  void read(const char* name, std::vector<TokenId>& out, std::uint32_t vocab_size);

  void fail(const char* name, ErrorCode code, std::string message);
  /// "NAME is VALUE, but must be WANTED."
  void refuse(const char* name, const Json& value, const std::string& wanted);
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  std::optional<double> checked_number(const char* name, Range range, bool whole);

  const Json& object_;
  std::optional<Error> error_;
};

/// Ids in a list, each inside the vocabulary; the first that is not a token otherwise.
struct TokenList {
  std::vector<TokenId> ids;
  const Json* wrong = nullptr;
};
[[nodiscard]] TokenList read_token_ids(const Json& list, std::uint32_t vocab_size);

}  // namespace octavo
