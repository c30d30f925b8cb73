#include <array>

#include "probe/bursts.h"

namespace octavo {

std::uint64_t read_memory(const std::uint64_t* words, std::uint64_t bytes) {
  std::array<std::uint64_t, 8> sums{};
  for (std::uint64_t i = 0; i < bytes / sizeof *words; i += sums.size()) {
    for (std::uint64_t lane = 0; lane < sums.size(); ++lane) sums[lane] += words[i + lane];
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t lane : sums) sum += lane;
  return sum;
}

}  // namespace octavo
