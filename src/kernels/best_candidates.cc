#include "kernels/best_candidates.h"

#include <algorithm>
#include <limits>

namespace octavo {
namespace {

bool better(const Candidate& a, const Candidate& b) { return a.logit > b.logit || (a.logit == b.logit && a.id < b.id); }

}  // namespace

BestCandidates::BestCandidates(Candidate* slots, std::uint32_t capacity) : slots_(slots), capacity_(capacity) {}

bool BestCandidates::full() const { return size_ == capacity_; }

float BestCandidates::threshold() const {
  return capacity_ == 0 ? std::numeric_limits<float>::infinity() : slots_[0].logit;
}

void BestCandidates::offer(Candidate candidate) {
  if (candidate.logit != candidate.logit) return;
  if (full()) {
    if (!(candidate.logit > threshold())) return;
    std::pop_heap(slots_, slots_ + size_--, better);
  }
  slots_[size_++] = candidate;
  std::push_heap(slots_, slots_ + size_, better);
}

std::uint32_t BestCandidates::sort() {
  std::sort_heap(slots_, slots_ + size_, better);
  return size_;
}

}  // namespace octavo
