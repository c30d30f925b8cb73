// What a random test does with a failure: tries it in child processes, with less and less.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

namespace octavo::test {

/// As few of `items` as `fails` still says yes to: left out in halves, quarters, …, then one after another until
/// nothing more can go. `fails` of all items is taken for granted.
inline std::vector<std::uint32_t> shrink(std::vector<std::uint32_t> items,
                                         const std::function<bool(const std::vector<std::uint32_t>&)>& fails) {
  std::size_t piece = std::max<std::size_t>(items.size() / 2, 1);
  while (!items.empty()) {
    bool less = false;
    for (std::size_t at = 0; at < items.size();) {
      std::vector<std::uint32_t> rest = items;
      const auto begin = rest.begin() + static_cast<std::ptrdiff_t>(at);
      rest.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(piece, items.size() - at)));
      if (fails(rest)) {
        items = rest, less = true;
      } else {
        at += piece;
      }
    }
    if (piece == 1 && !less) break;
    piece = std::max<std::size_t>(piece / 2, 1);
  }
  return items;
}

/// What `body` returns in a process of its own; nothing if it fails an expectation there, crashes, or takes minutes.
template <class Body, class Value = std::invoke_result_t<Body>>
std::optional<Value> in_child(bool quiet, const Body& body) {
  static_assert(std::is_trivially_copyable_v<Value>);
  std::fflush(nullptr);
  int ends[2];
  if (::pipe(ends) != 0) return std::nullopt;
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(300);
    if (quiet &&
        (std::freopen("/dev/null", "w", stdout) == nullptr || std::freopen("/dev/null", "w", stderr) == nullptr))
      ::_exit(2);
    const Value value = body();
    std::fflush(nullptr);
    const bool said = ::write(ends[1], &value, sizeof value) == static_cast<ssize_t>(sizeof value);
    ::_exit(testing::Test::HasFailure() || !said ? 1 : 0);
  }
  ::close(ends[1]);
  Value value{};
  const bool heard = child > 0 && ::read(ends[0], &value, sizeof value) == static_cast<ssize_t>(sizeof value);
  ::close(ends[0]);
  int status = 1;
  const bool ended = child > 0 && ::waitpid(child, &status, 0) == child;
  return heard && ended && status == 0 ? std::optional(value) : std::nullopt;
}

}  // namespace octavo::test
