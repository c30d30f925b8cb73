// Bursts: the same work several times; the best is what the machine can do, the median what it did.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "base/memory.h"
#include "octavo/probe.h"
#include "octavo/result.h"

namespace octavo {

struct Spread {
  double min = 0, median = 0;
};

/// Of a list that is not empty.
[[nodiscard]] Spread spread_of(std::vector<double> seconds);

/// Seconds of one call of `work`, over bursts that repeat it for about `burst_seconds`: as many as `total_seconds`
/// hold, at least five.
[[nodiscard]] Spread time_bursts(double total_seconds, double burst_seconds, const std::function<void()>& work);

/// The same by all threads at once: from their common start to the end of the slowest, per burst.
[[nodiscard]] Spread time_threads(std::uint32_t threads, std::uint32_t bursts,
                                  const std::function<void(std::uint32_t thread)>& work);

/// Reads the first `bytes` of `buffer`, whose pages were written, again and again.
[[nodiscard]] ReadRate read_rate(const AlignedBuffer& buffer, std::uint64_t bytes, std::uint32_t threads);

/// A buffer of real pages, if it fits into what is free.
[[nodiscard]] Result<AlignedBuffer> written_buffer(std::uint64_t bytes);

}  // namespace octavo
