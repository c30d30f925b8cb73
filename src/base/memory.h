// What memory this process may use, and one aligned allocation.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace octavo {

/// The smaller of the system's available memory and what the cgroup still allows, in bytes.
[[nodiscard]] std::uint64_t available_memory_bytes();

/// Anonymous, zeroed, 64-byte aligned (2 MiB aligned and advised for huge pages when large). Owns its bytes. A mapping
/// of its own: an inaccessible page stands behind it.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t bytes);
  AlignedBuffer(AlignedBuffer&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~AlignedBuffer();

  [[nodiscard]] std::byte* data() const { return bytes_.data(); }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  template <class T>
  [[nodiscard]] T* as() const {
    return reinterpret_cast<T*>(bytes_.data());
  }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace octavo
