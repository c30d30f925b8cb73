#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "load/pack_cache.h"
#include "load/pack_format.h"
#include "load/sha256.h"

namespace octavo {
namespace {

PackHeader header_of(const FileMap& map) {
  PackHeader header;
  std::memcpy(&header, map.bytes().data(), sizeof header);
  return header;
}

PackChecksum chunk_checksum(const FileMap& map, std::size_t index) {
  PackChecksum checksum;
  std::memcpy(&checksum, map.bytes().data() + sizeof(PackHeader) + index * sizeof checksum, sizeof checksum);
  return checksum;
}

std::string_view text_of(const HexDigest& digest) { return {digest.data(), digest.size()}; }

/// What is wrong; nullptr: nothing. Sizes are looked at before anything that they would lead to.
const char* fault_of(const FileMap& map, const PackId& id) {
  if (map.bytes().size() < sizeof(PackHeader)) return "it ends within its header";
  const PackHeader header = header_of(map);
  if (header.magic != kPackMagic) return "it does not begin like a pack";
  if (header.version != kPackVersion || header.header_bytes != sizeof header) return "another version wrote it";
  if (header.header_checksum != checksum_of(header)) return "its header is damaged";
  if (header.packed_bytes != id.bytes || text_of(header.layout) != pack_layout_digest(id.layout)) {
    return "it has another layout";
  }
  if (text_of(header.source_key) != id.source_key) return "the model has changed since";
  if (header.packed_offset != packed_offset_of(id.bytes) || map.bytes().size() != header.packed_offset + id.bytes) {
    return "it has the wrong length";
  }
  const std::byte* table = map.bytes().data() + sizeof header;
  if (header.table_checksum != checksum_of(table, pack_chunks(id.bytes) * sizeof(PackChecksum))) {
    return "its table of checksums is damaged";
  }
  return nullptr;
}

}  // namespace

PackChecksum checksum_of(const void* data, std::size_t bytes) {
  const XXH128_hash_t hash = XXH3_128bits(data, bytes);
  return {hash.low64, hash.high64};
}

std::string pack_layout_digest(const std::string& layout) {
  Sha256 hash;
  hash.add(layout);
  return hash.hex();
}

Result<PackFile> PackFile::open(const std::string& path, const PackId& id) {
  OCTAVO_TRY(FileMap map, FileMap::open(path));
  if (const char* fault = fault_of(map, id)) return Error{ErrorCode::kCorrupt, fmt::format("{}: {}", path, fault), ""};
  // Where the file system keeps large folios, the weights get huge pages as anonymous memory would.
  ::madvise(const_cast<std::byte*>(map.bytes().data()), map.bytes().size(), MADV_HUGEPAGE);
  return PackFile(std::move(map));
}

std::span<const std::byte> PackFile::packed() const {
  const PackHeader header = header_of(map_);
  return map_.bytes().subspan(header.packed_offset, header.packed_bytes);
}

std::string PackFile::source_sha256() const { return std::string(text_of(header_of(map_).source_sha256)); }

std::size_t PackFile::num_chunks() const { return pack_chunks(packed().size()); }

std::span<const std::byte> PackFile::chunk(std::size_t index) const {
  const std::size_t begin = index * kPackChunkBytes;
  return packed().subspan(begin, std::min<std::size_t>(kPackChunkBytes, packed().size() - begin));
}

bool PackFile::chunk_is_sound(std::size_t index) const {
  return checksum_of(chunk(index).data(), chunk(index).size()) == chunk_checksum(map_, index);
}

void PackFile::read_ahead(std::size_t index) const {
  ::madvise(const_cast<std::byte*>(chunk(index).data()), chunk(index).size(), MADV_WILLNEED);
}

void PackFile::let_go(std::size_t index) const {
  constexpr std::uintptr_t kPage = 4096;
  const auto begin = reinterpret_cast<std::uintptr_t>(chunk(index).data()), end = begin + chunk(index).size();
  const std::uintptr_t first = begin / kPage * kPage;
  ::madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

void PackFile::remove() const {
  struct stat there {};
  if (::stat(path().c_str(), &there) == 0 && there.st_ino == map_.identity().inode) ::unlink(path().c_str());
}

}  // namespace octavo
