// What this thread took from the heap, in a program that includes support/counting_new.h once.
#pragma once
#include <cstdint>

namespace octavo::testing {

inline thread_local std::uint64_t heap_calls = 0;

}  // namespace octavo::testing
