#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/format.h"

namespace octavo {
namespace {

constexpr std::chrono::milliseconds kRedraw{100}, kPlainLine{5000};
constexpr std::uint64_t kBarWidth = 30;
constexpr const char* kClearLine = "\r\x1b[K";

}  // namespace

ProgressBar::ProgressBar(Unit unit) : unit_(unit), terminal_(isatty(STDERR_FILENO) == 1), last_(Clock::now()) {}

ProgressBar::~ProgressBar() {
  if (drawn_) fmt::print(stderr, "{}", kClearLine);
}

std::string ProgressBar::amount(std::uint64_t done, std::uint64_t total) const {
  if (unit_ == Unit::kItems) return total == 0 ? fmt::format("{}", done) : fmt::format("{} of {}", done, total);
  return total == 0 ? human_bytes(done) : fmt::format("{} of {}", human_bytes(done), human_bytes(total));
}

void ProgressBar::update(const std::string& what, std::uint64_t done, std::uint64_t total) {
  const auto now = Clock::now();
  if (now - last_ < (terminal_ ? kRedraw : kPlainLine)) return;
  last_ = now;
  if (!terminal_) {
    fmt::print(stderr, "{}: {}\n", what, amount(done, total));
    return;
  }
  const std::uint64_t filled = total == 0 ? 0 : std::min(kBarWidth, kBarWidth * done / total);
  fmt::print(stderr, "{}{} [{:#<{}}{:.<{}}] {}", kClearLine, what, "", filled, "", kBarWidth - filled,
             amount(done, total));
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace octavo
