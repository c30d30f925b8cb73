#include "base/prefault.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "base/idle_priority.h"

namespace octavo {
namespace {

constexpr std::size_t kPiece = std::size_t{2} << 20;  // a huge page
constexpr int kPopulateWrite = 23;                    // MADV_POPULATE_WRITE, which older headers lack

void prefault(const std::stop_token& stop, std::span<std::byte> memory) {
  while (!memory.empty() && !stop.stop_requested()) {
    const auto piece = memory.first(std::min(kPiece, memory.size()));
    if (::madvise(piece.data(), piece.size(), kPopulateWrite) != 0) return;
    memory = memory.subspan(piece.size());
  }
}

}  // namespace

BackgroundPrefault::BackgroundPrefault(std::vector<std::span<std::byte>> memory)
    : thread_([memory = std::move(memory)](const std::stop_token& stop) {
        take_idle_priority();
        for (const std::span<std::byte> part : memory) prefault(stop, part);
      }) {}

BackgroundPrefault::~BackgroundPrefault() {
  thread_.request_stop();
  end_idle_priority(thread_.native_handle());
}

}  // namespace octavo
