// A bounded queue of byte messages from one thread to another, without locks or allocation.
//
// Threads: push() by one writer, pop() by one reader.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace octavo {

class ByteQueue {
 public:
  explicit ByteQueue(std::size_t bytes) : bytes_(bytes) {}

  /// The parts, one after another, as one message. False: there is no room, and nothing happened.
  [[nodiscard]] bool push(std::span<const std::span<const std::byte>> parts) {
    std::uint64_t size = 0;
    for (const auto& part : parts) size += part.size();
    const std::uint64_t end = end_.load(std::memory_order_relaxed);
    if (sizeof(size) + size > bytes_.size() - (end - begin_.load(std::memory_order_acquire))) return false;
    std::uint64_t at = put(end, std::as_bytes(std::span(&size, 1)));
    for (const auto& part : parts) at = put(at, part);
    end_.store(at, std::memory_order_release);
    return true;
  }

  /// False: empty.
  [[nodiscard]] bool pop(std::vector<std::byte>& message) {
    const std::uint64_t begin = begin_.load(std::memory_order_relaxed);
    if (begin == end_.load(std::memory_order_acquire)) return false;
    std::uint64_t size = 0;
    const std::uint64_t body = get(begin, std::as_writable_bytes(std::span(&size, 1)));
    message.resize(size);
    begin_.store(get(body, message), std::memory_order_release);
    return true;
  }

 private:
  /// f(place in bytes_, place in the data, count): once, or twice around the edge.
  template <class F>
  std::uint64_t each_stretch(std::uint64_t at, std::size_t size, const F& f) {
    const std::size_t place = at % bytes_.size(), first = std::min(size, bytes_.size() - place);
    if (first > 0) f(place, 0, first);
    if (size > first) f(0, first, size - first);
    return at + size;
  }
  std::uint64_t put(std::uint64_t at, std::span<const std::byte> data) {
    return each_stretch(at, data.size(), [&](std::size_t place, std::size_t from, std::size_t count) {
      std::memcpy(bytes_.data() + place, data.data() + from, count);
    });
  }
  std::uint64_t get(std::uint64_t at, std::span<std::byte> data) {
    return each_stretch(at, data.size(), [&](std::size_t place, std::size_t from, std::size_t count) {
      std::memcpy(data.data() + from, bytes_.data() + place, count);
    });
  }

  std::vector<std::byte> bytes_;
  std::atomic<std::uint64_t> begin_{0}, end_{0};  // of all bytes ever; reader's and writer's
};

}  // namespace octavo
