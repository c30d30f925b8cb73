// Python's numbers: integers without limit (here: 16384 bits), IEEE doubles, and bool as a kind of integer.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "text/jinja_value.h"

namespace octavo::jinja {

inline constexpr unsigned kMaxIntegerBits = 16384;

enum class Order : std::uint8_t { kLess, kEqual, kGreater, kUnordered };
enum class Arithmetic : std::uint8_t { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };

/// All arguments called a and b, and `value`, are numbers unless said otherwise.
[[nodiscard]] Order compare_numbers(const Value& a, const Value& b);
[[nodiscard]] std::size_t hash_number(const Value& value);
[[nodiscard]] Value calculate(Arithmetic operation, const Value& a, const Value& b);
[[nodiscard]] Value negate(const Value& value);
[[nodiscard]] Value absolute(const Value& value);
/// round(): half to even, on the exact binary value.
[[nodiscard]] Value round_to(const Value& value, std::int64_t digits);

/// A bool as the integer it is; other integers as they are.
[[nodiscard]] Value as_integer(const Value& integer);
[[nodiscard]] Value from_unsigned(std::uint64_t value);
[[nodiscard]] std::int64_t bit_length(const Value& integer);
[[nodiscard]] double to_double(const Value& value);
/// Truncates; fails for infinities and NaN.
[[nodiscard]] Value truncate(double value);

/// A value usable as an index: an integer clamped to 64 bits; nullopt for anything that is no integer.
[[nodiscard]] std::optional<std::int64_t> as_index(const Value& value);

[[nodiscard]] std::string integer_text(const Value& integer);
/// The shortest digits that read back as `value`, in Python's form: 1.0, 1e-07, 1e+16, inf, nan.
[[nodiscard]] std::string float_text(double value);
/// int(text, base) and float(text); nullopt where Python raises ValueError.
[[nodiscard]] std::optional<Value> parse_integer(std::string_view text, int base);
[[nodiscard]] std::optional<double> parse_float(std::string_view text);

}  // namespace octavo::jinja
