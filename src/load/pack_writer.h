// A pack being written. See load/pack_cache.h; this is its other half.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "load/pack_cache.h"
#include "octavo/result.h"

namespace octavo {

/// A file beside a pack's place that its writer holds locked; removed by whoever locked it last, unless it has become
/// the pack.
class PackDraft {
 public:
  PackDraft(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  PackDraft(PackDraft&& other) noexcept : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
  PackDraft& operator=(PackDraft&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~PackDraft();

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] Result<> become(const std::string& pack_path);

 private:
  std::string path_;
  int fd_;
};

/// Locks `path`, made if need be. While another process writes it, `waiting` is told how much there is; kIo if that has
/// stood still for too long.
[[nodiscard]] Result<PackDraft> lock_draft(const std::string& path, const PackCache::Waiting& waiting);
/// Removes the draft of a process that is gone.
void remove_orphan(const std::string& path);

/// Reserves the disk's space at once: a full disk is told before any work.
[[nodiscard]] Result<std::unique_ptr<PackWriter>> write_pack(PackDraft draft, std::string pack_path, const PackId& id);

}  // namespace octavo
