#include "server/finish_rate.h"

#include <algorithm>

namespace octavo {

void FinishRate::finished(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  times_[count_++ % kRequests] = now;
}

std::uint32_t FinishRate::retry_after_seconds(Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  const std::size_t known = std::min(count_, kRequests);
  if (known == 0) return 1;
  const auto since = now - times_[(count_ - known) % kRequests];
  const auto per_request = std::chrono::ceil<std::chrono::seconds>(since / known).count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(per_request, 1, kMostSeconds));
}

}  // namespace octavo
