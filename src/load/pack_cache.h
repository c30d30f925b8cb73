// Packed weights kept as files, so that later starts map them instead of packing again.
//
// A pack is one file of the cache's folder: header, a checksum per chunk, and the packed bytes as WeightsPlan lays them
// out. It is written beside its place, synced and renamed, under a lock, so that a pack is there whole or not at all
// and of several processes one writes it. What a header does not vouch for (another version, source or layout, damage)
// is never used; the packed bytes themselves are checked by PackCheck (load/pack_check.h), after the start. The folder
// holds at most so many bytes: who was used longest ago (by mtime) goes first. Removing a pack leaves those who have it
// mapped undisturbed.
//
// Threads: none shared; any number of processes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file_map.h"
#include "octavo/result.h"
#include "tensor/packed_sink.h"

namespace octavo {

/// What a pack is of, and in which form.
struct PackId {
  std::string model;       // path of the file or folder: gives the pack its name
  std::string source_key;  // Checkpoint::source_key()
  std::string layout;      // WeightsPlan::description()
  std::uint64_t bytes = 0;
};

/// A pack whose header is in order and says what its PackId asks for.
class PackFile {
 public:
  /// kNotFound: there is none. kCorrupt: damaged, or of something else; the message says which.
  [[nodiscard]] static Result<PackFile> open(const std::string& path, const PackId& id);

  [[nodiscard]] const std::string& path() const { return map_.path(); }
  [[nodiscard]] std::span<const std::byte> packed() const;  // 64-byte aligned
  [[nodiscard]] std::string source_sha256() const;          // source_sha256() of load/source_key.h, in hex

  [[nodiscard]] std::size_t num_chunks() const;
  [[nodiscard]] std::span<const std::byte> chunk(std::size_t index) const;
  [[nodiscard]] bool chunk_is_sound(std::size_t index) const;  // reads all of it

  void read_ahead(std::size_t index) const;  // starts to read a chunk that is not in memory

  /// Takes a chunk's pages out of this process, not out of the system's cache.
  void let_go(std::size_t index) const;

  /// The file goes, unless another has taken its place; the map stays.
  void remove() const;

 private:
  explicit PackFile(FileMap map) : map_(std::move(map)) {}
  FileMap map_;
};

/// A pack on its way to the disk. Unless finished, nothing is left of it.
class PackWriter : public PackedSink {
 public:
  /// After the last byte. kIo, also if a room or put before it failed: says what and why.
  [[nodiscard]] virtual Result<> finish(const std::string& source_sha256) = 0;
};

class PackCache {
 public:
  /// Another process packs the same; so many bytes of it are there.
  using Waiting = std::function<void(std::uint64_t done)>;

  PackCache(std::string folder, std::uint64_t limit_bytes) : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}

  /// $OCTAVO_CACHE is "off".
  [[nodiscard]] static bool switched_off();
  /// $OCTAVO_CACHE, else octavo/packed in $XDG_CACHE_HOME or ~/.cache. Empty: it is off, or there is no home.
  [[nodiscard]] static std::string default_folder();

  [[nodiscard]] std::string path_of(const PackId& id) const;
  /// See PackFile::open. Marks the pack as used.
  [[nodiscard]] Result<PackFile> find(const PackId& id) const;

  struct Claim {
    std::optional<PackFile> found;       // somebody has packed it meanwhile
    std::unique_ptr<PackWriter> writer;  // else: it is ours to pack
  };
  /// Waits for whoever packs the same, removes a pack that is not in order, makes room. kIo: the folder or disk does
  /// not take it. kExhausted: it is larger than the limit.
  [[nodiscard]] Result<Claim> claim(const PackId& id, const Waiting& waiting) const;

 private:
  [[nodiscard]] Result<> make_room(const std::string& for_path, std::uint64_t bytes) const;

  std::string folder_;
  std::uint64_t limit_bytes_;
};

}  // namespace octavo
