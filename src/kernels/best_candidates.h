// The k best candidates of a stream in ascending id order: a heap in the caller's array, its worst member on top.
#pragma once
#include <cstdint>

#include "kernels/kernels.h"

namespace octavo {

class BestCandidates {
 public:
  BestCandidates(Candidate* slots, std::uint32_t capacity);

  [[nodiscard]] bool full() const;
  /// Once full: only a logit above this one can still be kept.
  [[nodiscard]] float threshold() const;
  /// Keeps the candidate if it is among the best so far. NaN never is.
  void offer(Candidate candidate);
  /// Brings the slots into order, descending logit, then ascending id. Returns how many are taken.
  std::uint32_t sort();

 private:
  Candidate* slots_;
  std::uint32_t capacity_, size_ = 0;
};

}  // namespace octavo
