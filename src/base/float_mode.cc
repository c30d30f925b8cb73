#include "base/float_mode.h"

#include <xmmintrin.h>

namespace octavo {
namespace {
constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040, kExceptionMasks = 0x1F80;
}  // namespace

FloatMode::FloatMode(Kind kind) : saved_(_mm_getcsr()) {
  _mm_setcsr(kind == Kind::kIeee ? kExceptionMasks : kExceptionMasks | kFlushToZero | kDenormalsAreZero);
}
FloatMode::~FloatMode() { _mm_setcsr(saved_); }

}  // namespace octavo
