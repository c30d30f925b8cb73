// How far long work is: a bar on a terminal, a plain line now and then elsewhere, both on stderr.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace octavo {

/// Short work stays silent where there is no terminal. One thread at a time.
class ProgressBar {
 public:
  enum class Unit : std::uint8_t { kBytes, kItems };
  explicit ProgressBar(Unit unit);
  ~ProgressBar();  // clears the bar
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// `total` 0: unknown.
  void update(const std::string& what, std::uint64_t done, std::uint64_t total);

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] std::string amount(std::uint64_t done, std::uint64_t total) const;

  Unit unit_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point last_;
};

}  // namespace octavo
