#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace octavo {

void check_failed(const char* file, int line, const char* sentence) {
  std::fprintf(stderr, "octavo: broken invariant at %s:%d: %s\n", file, line, sentence);
  std::abort();
}

}  // namespace octavo
