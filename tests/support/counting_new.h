// Counts what this thread takes from the heap. Include it in one file of a test program: it replaces operator new.
#pragma once
#include <cstdlib>
#include <new>

#include "support/heap_calls.h"

// Not inlined: else the compiler sees new beside free and warns.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++octavo::testing::heap_calls;
  if (void* place = std::malloc(bytes == 0 ? 1 : bytes)) return place;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* place) noexcept { std::free(place); }
[[gnu::noinline]] void operator delete(void* place, std::size_t) noexcept { std::free(place); }
