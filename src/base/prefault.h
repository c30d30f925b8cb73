// Makes memory resident ahead of its first use, in the background and at idle priority: else the first steps that use
// it pay for each page, and what a process will take shows only once it is full.
#pragma once
#include <cstddef>
#include <span>
#include <thread>
#include <vector>

namespace octavo {

class BackgroundPrefault {
 public:
  /// `memory` outlives this; its contents stay, and others may use it meanwhile. A kernel before Linux 5.14 leaves it
  /// as it is.
  explicit BackgroundPrefault(std::vector<std::span<std::byte>> memory);
  ~BackgroundPrefault();

 private:
  std::jthread thread_;  // stops between pieces of a few milliseconds
};

}  // namespace octavo
