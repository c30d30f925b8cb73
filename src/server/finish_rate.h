// How soon a place becomes free, from how often one did lately: what a client that finds the queue full is told.
//
// Threads: any.
#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace octavo {

class FinishRate {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kRequests = 32;
  static constexpr std::uint32_t kMostSeconds = 60;

  /// A request left.
  void finished(Clock::time_point now);
  /// The mean time per request over the last kRequests, rounded up to whole seconds, 1 to kMostSeconds. Time without a
  /// finished request counts, so that a stall shows. 1 as long as nothing is known.
  [[nodiscard]] std::uint32_t retry_after_seconds(Clock::time_point now) const;

 private:
  mutable std::mutex mutex_;
  std::array<Clock::time_point, kRequests> times_{};
  std::size_t count_ = 0;  // ever
};

}  // namespace octavo
