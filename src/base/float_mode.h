// The floating-point mode of the numerics contract: round to nearest, denormals in and out are zero (FTZ and DAZ).
// AMX and BF16 instructions always behave so; setting it everywhere makes all x86 paths agree on bits.
#pragma once

namespace octavo {

/// Sets a mode for this thread, restores the old one at the end of the scope.
class FloatMode {
 public:
  enum class Kind { kContract, kIeee };  // kIeee: denormals count, for byte-exact de-quantisation
  explicit FloatMode(Kind kind = Kind::kContract);
  ~FloatMode();
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
  unsigned saved_;
};

}  // namespace octavo
