// Integers beyond 64 bits. Apart from jinja_number.h because the library behind them is slow to compile.
#pragma once
#include <boost/multiprecision/cpp_int.hpp>

#include "text/jinja_value.h"

namespace octavo::jinja {

using BigInteger = boost::multiprecision::cpp_int;

struct Big {
  BigInteger value;
};

[[nodiscard]] BigInteger to_big(const Value& integer);
[[nodiscard]] Value from_big(BigInteger value);

}  // namespace octavo::jinja
