// The floating-point mode of the numerics contract: round to nearest, denormals in and out are zero (FTZ and DAZ).
// AMX and BF16 instructions always behave so; setting it everywhere makes all x86 paths agree on bits.
#pragma once

namespace octavo {

/// Sets the mode for this thread, restores the old one at the end of the scope.
class FloatMode {
 public:
  FloatMode();
  ~FloatMode();
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
  unsigned saved_;
};

}  // namespace octavo
