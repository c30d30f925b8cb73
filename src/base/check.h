// Assertions for our own mistakes. User input never reaches one.
#pragma once

namespace octavo {
/// Prints the sentence and where it stands, then aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* sentence);
}  // namespace octavo

#define OCTAVO_CHECK(condition, sentence)                                   \
  do {                                                                      \
    if (!(condition)) ::octavo::check_failed(__FILE__, __LINE__, sentence); \
  } while (false)
