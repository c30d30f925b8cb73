// The one place that reads environment variables.
#pragma once
#include <cstdlib>
#include <string>

namespace octavo {

/// The variable's value; empty if it is unset.
[[nodiscard]] inline std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace octavo
