#include "text/jinja_number.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "text/jinja_big.h"
#include "text/jinja_unicode.h"

namespace octavo::jinja {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr double kExactLimit = 9007199254740992.0;  // 2^53: integers up to here are exact doubles

/// The value as a 64-bit integer, if it is one.
std::optional<std::int64_t> as_small(const Value& value) {
  if (const std::int64_t* i = value.small()) return *i;
  if (const bool* b = value.boolean()) return *b ? 1 : 0;
  return std::nullopt;
}

BigInteger from_double(double whole) { return BigInteger(whole); }

Order order(auto a, auto b) {
  if (a < b) return Order::kLess;
  if (a > b) return Order::kGreater;
  return a == b ? Order::kEqual : Order::kUnordered;
}

Order compare_integer_with_float(const Value& integer, double real) {
  if (std::isnan(real)) return Order::kUnordered;
  if (std::isinf(real)) return real > 0 ? Order::kLess : Order::kGreater;
  const double whole = std::floor(real);
  const BigInteger a = to_big(integer), b = from_double(whole);
  if (a == b) return whole < real ? Order::kLess : Order::kEqual;
  return a < b ? Order::kLess : Order::kGreater;
}

[[noreturn]] void division_by_zero() { fail("division by zero"); }

std::optional<std::int64_t> calculate_small(Arithmetic operation, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  switch (operation) {
    case Arithmetic::kAdd: return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case Arithmetic::kSubtract: return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case Arithmetic::kMultiply: return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case Arithmetic::kFloorDivide:
      if (a == kMin && b == -1) return std::nullopt;
      return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
    case Arithmetic::kModulo:
      if (b == -1) return 0;
      result = a % b;
      return result != 0 && (result < 0) != (b < 0) ? result + b : result;
    default: return std::nullopt;
  }
}

BigInteger floor_divide(const BigInteger& a, const BigInteger& b) {
  BigInteger quotient = a / b;
  if (a % b != 0 && (a < 0) != (b < 0)) quotient -= 1;
  return quotient;
}

BigInteger integer_power(const BigInteger& base, std::int64_t exponent) {
  if (base == 0 || base == 1) return exponent == 0 ? BigInteger(1) : base;
  if (base == -1) return BigInteger(exponent % 2 ? -1 : 1);
  const BigInteger magnitude = base < 0 ? BigInteger(-base) : base;
  if (msb(magnitude) * static_cast<double>(exponent) > kMaxIntegerBits) {
    fail("an integer grew beyond " + std::to_string(kMaxIntegerBits) + " bits");
  }
  return boost::multiprecision::pow(base, static_cast<unsigned>(exponent));
}

double floor_divide(double a, double b, double& modulo) {
  modulo = std::fmod(a, b);
  double quotient = (a - modulo) / b;
  if (modulo != 0.0) {
    if ((b < 0) != (modulo < 0)) {
      modulo += b;
      quotient -= 1.0;
    }
  } else {
    modulo = std::copysign(0.0, b);
  }
  if (quotient == 0.0) return std::copysign(0.0, a / b);
  const double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1.0 : whole;
}

Value float_power(double a, double b) {
  if (a == 0.0 && b < 0.0) fail("0.0 cannot be raised to a negative power");
  if (a < 0.0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b)) {
    fail("a negative number to a fractional power is complex, which templates do not have");
  }
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) fail("(34, 'Numerical result out of range')");
  return result;
}

Value calculate_float(Arithmetic operation, double a, double b) {
  double modulo = 0.0;
  switch (operation) {
    case Arithmetic::kAdd: return a + b;
    case Arithmetic::kSubtract: return a - b;
    case Arithmetic::kMultiply: return a * b;
    case Arithmetic::kPower: return float_power(a, b);
    default: break;
  }
  if (b == 0.0) division_by_zero();
  if (operation == Arithmetic::kDivide) return a / b;
  const double quotient = floor_divide(a, b, modulo);
  return operation == Arithmetic::kModulo ? modulo : quotient;
}

Value calculate_integer(Arithmetic operation, const Value& a, const Value& b) {
  const auto x = as_small(a), y = as_small(b);
  const bool divides =
      operation == Arithmetic::kDivide || operation == Arithmetic::kFloorDivide || operation == Arithmetic::kModulo;
  if (divides && y && *y == 0) division_by_zero();
  if (x && y) {
    if (const auto result = calculate_small(operation, *x, *y)) return *result;
  }
  const BigInteger p = to_big(a), q = to_big(b);
  switch (operation) {
    case Arithmetic::kAdd: return from_big(p + q);
    case Arithmetic::kSubtract: return from_big(p - q);
    case Arithmetic::kMultiply: return from_big(p * q);
    case Arithmetic::kDivide: return to_double(a) / to_double(b);
    case Arithmetic::kFloorDivide: return from_big(floor_divide(p, q));
    case Arithmetic::kModulo: return from_big(p - floor_divide(p, q) * q);
    case Arithmetic::kPower: break;
  }
  if (q < 0) {
    if (p == 0) fail("0.0 cannot be raised to a negative power");
    return float_power(to_double(a), to_double(b));
  }
  return from_big(integer_power(p, q > kMax ? kMax : static_cast<std::int64_t>(q)));
}

/// Drops the underscores that stand between two digits; nullopt if one stands elsewhere.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
    } else if (i == 0 || i + 1 == text.size() || !std::isalnum(static_cast<unsigned char>(text[i - 1])) ||
               !std::isalnum(static_cast<unsigned char>(text[i + 1]))) {
      return std::nullopt;
    }
  }
  return out;
}

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return 99;
}

int prefix_base(std::string_view digits) {
  if (digits.size() < 2 || digits[0] != '0') return 0;
  switch (digits[1] | 0x20) {
    case 'x': return 16;
    case 'o': return 8;
    case 'b': return 2;
    default: return 0;
  }
}

}  // namespace

BigInteger to_big(const Value& integer) {
  if (const Big* big = integer.big()) return big->value;
  return BigInteger(as_small(integer).value_or(0));
}

Value from_big(BigInteger value) {
  if (value >= kMin && value <= kMax) return Value(static_cast<std::int64_t>(value));
  if (msb(value < 0 ? BigInteger(-value) : value) >= kMaxIntegerBits) {
    fail("an integer grew beyond " + std::to_string(kMaxIntegerBits) + " bits");
  }
  return Value(std::make_shared<const Big>(Big{std::move(value)}));
}

Value as_integer(const Value& integer) { return integer.is_bool() ? Value(*integer.boolean() ? 1 : 0) : integer; }

Value from_unsigned(std::uint64_t value) { return from_big(BigInteger(value)); }

std::int64_t bit_length(const Value& integer) {
  const BigInteger value = to_big(integer);
  return value == 0 ? 0 : static_cast<std::int64_t>(msb(value < 0 ? BigInteger(-value) : value)) + 1;
}

double to_double(const Value& value) {
  if (const double* d = value.real()) return *d;
  if (const auto i = as_small(value)) return static_cast<double>(*i);
  const double result = value.big()->value.convert_to<double>();
  if (std::isinf(result)) fail("int too large to convert to float");
  return result;
}

Value truncate(double value) {
  if (std::isnan(value)) fail("cannot convert float NaN to integer");
  if (std::isinf(value)) fail("cannot convert float infinity to integer");
  const double whole = std::trunc(value);
  if (std::fabs(whole) < kExactLimit) return Value(static_cast<std::int64_t>(whole));
  return from_big(from_double(whole));
}

std::optional<std::int64_t> as_index(const Value& value) {
  if (const auto i = as_small(value)) return i;
  if (const Big* big = value.big()) return big->value < 0 ? kMin : kMax;
  return std::nullopt;
}

Order compare_numbers(const Value& a, const Value& b) {
  const double *x = a.real(), *y = b.real();
  if (x && y) return order(*x, *y);
  if (y) return compare_integer_with_float(a, *y);
  if (x) {
    const Order mirrored = compare_integer_with_float(b, *x);
    if (mirrored == Order::kLess) return Order::kGreater;
    return mirrored == Order::kGreater ? Order::kLess : mirrored;
  }
  const auto i = as_small(a), j = as_small(b);
  if (i && j) return order(*i, *j);
  return order(to_big(a), to_big(b));
}

std::size_t hash_number(const Value& value) {
  if (const auto i = as_small(value)) return std::hash<std::int64_t>{}(*i);
  if (const double* d = value.real()) {
    if (std::fabs(*d) < kExactLimit && *d == std::trunc(*d)) return std::hash<std::int64_t>{}(std::llround(*d));
    return std::hash<double>{}(*d);
  }
  return std::hash<double>{}(value.big()->value.convert_to<double>());
}

Value calculate(Arithmetic operation, const Value& a, const Value& b) {
  if (a.is_float() || b.is_float()) return calculate_float(operation, to_double(a), to_double(b));
  return calculate_integer(operation, a, b);
}

Value negate(const Value& value) {
  if (const double* d = value.real()) return -*d;
  return from_big(-to_big(value));
}

Value absolute(const Value& value) {
  if (const double* d = value.real()) return std::fabs(*d);
  const BigInteger integer = to_big(value);
  return from_big(integer < 0 ? BigInteger(-integer) : integer);
}

Value round_to(const Value& value, std::int64_t digits) {
  if (value.is_integer()) {
    if (digits >= 0) return as_integer(value);
    if (digits < -static_cast<std::int64_t>(kMaxIntegerBits)) return 0;
    const BigInteger unit = integer_power(BigInteger(10), -digits), integer = to_big(value);
    BigInteger below = floor_divide(integer, unit);
    const BigInteger twice = (integer - below * unit) * 2;
    if (twice > unit || (twice == unit && below % 2 != 0)) below += 1;
    return from_big(below * unit);
  }
  const double real = *value.real();
  if (!std::isfinite(real) || digits > 323) return real;
  if (digits < -308) return std::copysign(0.0, real);
  if (digits < 0) {
    const double unit = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(real / unit) * unit;
  }
  char buffer[800];  // 309 digits before the point and 323 after at most
  std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(digits), real);
  return std::strtod(buffer, nullptr);
}

std::string integer_text(const Value& integer) {
  if (const auto i = as_small(integer)) return std::to_string(*i);
  return integer.big()->value.str();
}

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto written = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string_view shortest(buffer, static_cast<std::size_t>(written.ptr - buffer));
  const std::size_t e = shortest.find('e');
  const int exponent = std::atoi(buffer + e + 1);
  if (exponent >= -4 && exponent < 16) {
    const auto fixed = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed);
    std::string text(buffer, fixed.ptr);
    if (text.find('.') == text.npos) text += ".0";
    return text;
  }
  return std::string(shortest);  // already "1.5e-07": two exponent digits at least, sign always
}

std::optional<Value> parse_integer(std::string_view text, int base) {
  std::string_view digits = strip(text, std::nullopt, true, true);
  const bool negative = !digits.empty() && digits[0] == '-';
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) digits.remove_prefix(1);
  const int named = prefix_base(digits);
  if (named != 0 && (base == 0 || base == named)) {
    digits.remove_prefix(2);
    if (!digits.empty() && digits[0] == '_') digits.remove_prefix(1);
    base = named;
  }
  const auto clean = without_underscores(digits);
  if (!clean || clean->empty() || clean->size() > kMaxIntegerBits) return std::nullopt;
  const int radix = base == 0 ? 10 : base;
  BigInteger value = 0;
  for (const char c : *clean) {
    if (digit_value(c) >= radix) return std::nullopt;
    value = value * radix + digit_value(c);
  }
  if (base == 0 && named == 0 && clean->size() > 1 && (*clean)[0] == '0' && value != 0) return std::nullopt;
  return from_big(negative ? BigInteger(-value) : value);
}

std::optional<double> parse_float(std::string_view text) {
  const auto clean = without_underscores(strip(text, std::nullopt, true, true));
  if (!clean || clean->empty()) return std::nullopt;
  std::string_view body = *clean;
  const bool negative = body[0] == '-';
  if (body[0] == '-' || body[0] == '+') body.remove_prefix(1);
  const std::string word = to_lower(body);
  double value = 0.0;
  if (word == "inf" || word == "infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (word == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    if (body.empty() || body.find_first_not_of("0123456789.eE+-") != body.npos) return std::nullopt;
    const std::string copy(body);
    char* end = nullptr;
    value = std::strtod(copy.c_str(), &end);
    if (end != copy.c_str() + copy.size() || copy[0] == '+' || copy[0] == '-') return std::nullopt;
  }
  return negative ? -value : value;
}

}  // namespace octavo::jinja
