// The bytes of a pack before its weights. Native byte order: packs are not carried from machine to machine.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace octavo {

inline constexpr std::array<char, 8> kPackMagic = {'O', 'C', 'T', 'A', 'V', 'O', 'P', 'K'};
inline constexpr std::uint32_t kPackVersion = 1;
inline constexpr std::uint64_t kPackChunkBytes = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kPackAlignment = std::uint64_t{2} << 20;  // of the weights: where a huge page may begin

using PackChecksum = std::array<std::uint64_t, 2>;  // XXH3, 128 bits
using HexDigest = std::array<char, 64>;             // SHA-256

/// Followed by a PackChecksum of each chunk of the weights, then by zeros up to `packed_offset`.
struct PackHeader {
  std::array<char, 8> magic = kPackMagic;
  std::uint32_t version = kPackVersion;
  std::uint32_t header_bytes = 0;  // of this struct
  std::uint64_t packed_offset = 0, packed_bytes = 0;
  HexDigest source_key = {}, layout = {}, source_sha256 = {};
  PackChecksum table_checksum = {};   // of the chunks' checksums
  PackChecksum header_checksum = {};  // of all before
};
static_assert(std::is_trivially_copyable_v<PackHeader> && sizeof(PackHeader) == 256);

constexpr std::uint64_t pack_chunks(std::uint64_t packed_bytes) {
  return (packed_bytes + kPackChunkBytes - 1) / kPackChunkBytes;
}
constexpr std::uint64_t packed_offset_of(std::uint64_t packed_bytes) {
  const std::uint64_t head = sizeof(PackHeader) + pack_chunks(packed_bytes) * sizeof(PackChecksum);
  return (head + kPackAlignment - 1) / kPackAlignment * kPackAlignment;
}

/// Of PackId::layout, as the header has it.
[[nodiscard]] std::string pack_layout_digest(const std::string& layout);

[[nodiscard]] PackChecksum checksum_of(const void* data, std::size_t bytes);
[[nodiscard]] inline PackChecksum checksum_of(const PackHeader& header) {
  return checksum_of(&header, offsetof(PackHeader, header_checksum));
}

}  // namespace octavo
