#include "load/pack_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/cache_folder.h"
#include "load/pack_format.h"
#include "load/pack_writer.h"
#include "load/sha256.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr const char *kPackSuffix = ".pack", *kDraftSuffix = ".draft", *kBesideSuffix = ".steps";

/// A pack that is there, for the choice of which to remove.
struct Kept {
  fs::path path;
  std::uint64_t bytes;
  fs::file_time_type used;
};

}  // namespace

bool PackCache::switched_off() { return cache_switched_off(); }

std::string PackCache::default_folder() { return cache_folder("packed"); }

std::string PackCache::path_of(const PackId& id) const {
  std::error_code failed;
  fs::path model = fs::weakly_canonical(id.model, failed);
  if (failed) model = id.model;
  if (model.filename().empty()) model = model.parent_path();
  Sha256 place;
  place.add(fmt::format("{}\n{}\n{}", kPackVersion, model.string(), id.layout));
  return fs::path(folder_) / fmt::format("{}-{}{}", model.stem().string(), place.hex().substr(0, 16), kPackSuffix);
}

Result<PackFile> PackCache::find(const PackId& id) const {
  OCTAVO_TRY(PackFile pack, PackFile::open(path_of(id), id));
  const timespec now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
  (void)::utimensat(AT_FDCWD, pack.path().c_str(), now, 0);  // not ours to mark: it keeps its place in the line
  return pack;
}

Result<PackCache::Claim> PackCache::claim(const PackId& id, const Waiting& waiting) const {
  std::error_code failed;
  fs::create_directories(folder_, failed);
  if (failed) return Error{ErrorCode::kIo, fmt::format("{}: cannot create: {}", folder_, failed.message()), ""};
  const std::string path = path_of(id);
  OCTAVO_TRY(PackDraft draft, lock_draft(path + kDraftSuffix, waiting));
  Claim claim;
  if (auto found = find(id)) {
    claim.found = std::move(*found);
    return claim;
  }
  fs::remove(path, failed);
  OCTAVO_CHECK_OK(make_room(path, packed_offset_of(id.bytes) + id.bytes));
  OCTAVO_TRY(claim.writer, write_pack(std::move(draft), path, id));
  return claim;
}

Result<> PackCache::make_room(const std::string& for_path, std::uint64_t bytes) const {
  if (bytes > limit_bytes_) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("the packed weights take {} MiB, the cache {} holds at most {} MiB: raise --cache-bytes",
                             bytes >> 20, folder_, limit_bytes_ >> 20),
                 "cache_bytes"};
  }
  std::vector<Kept> packs;
  std::vector<fs::path> beside;  // what belongs to some pack
  std::uint64_t sum = bytes;
  std::error_code failed;
  for (fs::directory_iterator entry(folder_, failed), end; !failed && entry != end; entry.increment(failed)) {
    const fs::path& path = entry->path();
    if (path.extension() == kDraftSuffix && path != for_path + kDraftSuffix) remove_orphan(path.string());
    if (path.extension() == kBesideSuffix) beside.push_back(path);
    if (path.extension() != kPackSuffix) continue;
    std::error_code gone;
    Kept kept{path, entry->file_size(gone), entry->last_write_time(gone)};
    if (gone) continue;
    sum += kept.bytes;
    packs.push_back(std::move(kept));
  }
  std::ranges::sort(packs, {}, &Kept::used);
  for (const Kept& pack : packs) {
    if (sum <= limit_bytes_) break;
    if (!fs::remove(pack.path, failed)) continue;
    sum -= pack.bytes;
    for (const fs::path& file : beside) {
      if (file.filename().string().starts_with(pack.path.stem().string() + "-")) fs::remove(file, failed);
    }
  }
  return Ok{};
}

}  // namespace octavo
