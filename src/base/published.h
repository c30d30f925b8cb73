// A value that one thread publishes and any thread reads, without a lock on either side (a sequence lock over words).
//
// Threads: store() by one writer; load() by any, and it always sees one whole store.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace octavo {

template <class T>
class Published {
  static_assert(std::is_trivially_copyable_v<T>);
  static constexpr std::size_t kWords = (sizeof(T) + 7) / 8;

 public:
  void store(const T& value) {
    std::array<std::uint64_t, kWords> words{};
    std::memcpy(words.data(), static_cast<const void*>(&value), sizeof(T));
    const std::uint64_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);  // odd: being written
    std::atomic_thread_fence(std::memory_order_release);
    for (std::size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_relaxed);
    version_.store(version + 2, std::memory_order_release);
  }

  [[nodiscard]] T load() const {
    std::array<std::uint64_t, kWords> words{};
    for (;;) {
      const std::uint64_t before = version_.load(std::memory_order_acquire);
      for (std::size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_relaxed);
      // Read-don't-modify-write instead of a fence: ThreadSanitizer understands it.
      if (before % 2 == 0 && version_.fetch_add(0, std::memory_order_acq_rel) == before) break;
    }
    T value{};
    std::memcpy(static_cast<void*>(&value), words.data(), sizeof(T));
    return value;
  }

 private:
  mutable std::atomic<std::uint64_t> version_{0};
  std::array<std::atomic<std::uint64_t>, kWords> words_{};
};

}  // namespace octavo
