// Little-endian numbers and strings out of foreign bytes, every read checked against the end.
#pragma once
#include <fmt/format.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "octavo/result.h"

namespace octavo {

static_assert(std::endian::native == std::endian::little, "model files are read in place");

/// A trivially copyable T at `at`, of any alignment.
template <class T>
[[nodiscard]] T load_unaligned(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

class ByteReader {
 public:
  /// `path` is for the error messages.
  ByteReader(std::string path, std::span<const std::byte> bytes) : path_(std::move(path)), bytes_(bytes) {}

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  [[nodiscard]] std::uint64_t remaining() const { return bytes_.size() - offset_; }

  /// The next `count` bytes. `what` names them in the error.
  [[nodiscard]] Result<std::span<const std::byte>> take(std::uint64_t count, std::string_view what) {
    if (count > remaining()) {
      return corrupt(fmt::format("{} needs {} bytes, the file has {} left", what, count, remaining()));
    }
    const auto taken = bytes_.subspan(offset_, count);
    offset_ += count;
    return taken;
  }

  template <class T>
  [[nodiscard]] Result<T> number(std::string_view what) {
    OCTAVO_TRY(const auto bytes, take(sizeof(T), what));
    return load_unaligned<T>(bytes.data());
  }

  /// A string behind its 64-bit length.
  [[nodiscard]] Result<std::string_view> string(std::string_view what) {
    OCTAVO_TRY(const auto length, number<std::uint64_t>(what));
    OCTAVO_TRY(const auto bytes, take(length, what));
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  /// An error at the present offset.
  [[nodiscard]] Error corrupt(std::string_view reason) const {
    return {ErrorCode::kCorrupt, fmt::format("{}: at byte {}: {}", path_, offset_, reason), ""};
  }

 private:
  std::string path_;
  std::span<const std::byte> bytes_;
  std::uint64_t offset_ = 0;
};

}  // namespace octavo
