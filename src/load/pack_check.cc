#include "load/pack_check.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/idle_priority.h"
#include "load/sha256.h"
#include "load/source_key.h"

namespace octavo {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

/// SHA-256 of all that `fd` holds; nothing if it cannot be read or is no longer what it was. What is read is not kept
/// in memory: the packed weights serve in its stead.
std::optional<std::string> sha256_of(int fd, const FileIdentity& identity,
                                     const std::function<bool(std::size_t)>& read) {
  std::vector<std::byte> block(kBlockBytes);
  Sha256 hash;
  for (std::uint64_t at = 0; at < identity.size;) {
    const ssize_t n = ::pread(fd, block.data(), block.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    hash.add(std::span(block).first(static_cast<std::size_t>(n)));
    ::posix_fadvise(fd, static_cast<off_t>(at), n, POSIX_FADV_DONTNEED);
    at += static_cast<std::uint64_t>(n);
    if (!read(static_cast<std::size_t>(n))) return std::nullopt;
  }
  const auto now = identity_of(fd, "");
  if (!now || *now != identity) return std::nullopt;
  return hash.hex();
}

}  // namespace

PackCheck::PackCheck(std::shared_ptr<const PackFile> pack, std::span<const FileMap* const> sources, bool in_use)
    : pack_(std::move(pack)), in_use_(in_use) {
  for (const FileMap* source : sources) {
    sources_.push_back({source->path(), source->identity(), ::fcntl(source->fd(), F_DUPFD_CLOEXEC, 0)});
  }
}

PackCheck::~PackCheck() {
  for (const Source& source : sources_) {
    if (source.fd >= 0) ::close(source.fd);
  }
}

std::uint64_t PackCheck::total_bytes() const {
  std::uint64_t sum = pack_->packed().size();
  for (const Source& source : sources_) sum += source.identity.size;
  return sum;
}

void PackCheck::read_ahead(const GoOn& go_on) const {
  std::uint64_t done = 0;
  for (std::size_t i = 0; i < pack_->num_chunks() && go_on(done); ++i) {
    pack_->read_ahead(i);
    done += pack_->chunk(i).size();
  }
}

PackCheck::Verdict PackCheck::run(const GoOn& go_on) {
  std::uint64_t done = 0;
  for (std::size_t i = 0; i < pack_->num_chunks(); ++i) {
    if (!pack_->chunk_is_sound(i)) {
      return found(fmt::format("{}: the packed weights are damaged ({} bytes after their beginning)", pack_->path(),
                               pack_->chunk(i).data() - pack_->packed().data()));
    }
    if (!in_use_) pack_->let_go(i);
    if (!go_on(done += pack_->chunk(i).size())) return Verdict::kStopped;
  }
  std::vector<std::string> of_files;
  for (const Source& source : sources_) {
    bool stopped = false;
    const auto sha = sha256_of(source.fd, source.identity, [&](std::size_t bytes) {
      stopped = !go_on(done += bytes);
      return !stopped;
    });
    if (stopped) return Verdict::kStopped;
    if (!sha) return Verdict::kUnknown;
    of_files.push_back(*sha);
  }
  if (join_sha256(of_files) == pack_->source_sha256()) return Verdict::kSound;
  return found(fmt::format("{}: the model is not what {} was packed from, though its size and times are the same",
                           sources_.back().path, pack_->path()));
}

PackCheck::Verdict PackCheck::found(std::string fault) {
  fault_ = std::move(fault);
  pack_->remove();
  return Verdict::kFault;
}

BackgroundPackCheck::BackgroundPackCheck(std::unique_ptr<PackCheck> check, OnFault on_fault)
    : check_(std::move(check)), thread_([this, on_fault = std::move(on_fault)] {
        const auto go_on = [this](std::uint64_t) { return !stop_.load(std::memory_order_relaxed); };
        check_->read_ahead(go_on);
        take_idle_priority();
        const auto verdict = check_->run(go_on);
        if (verdict == PackCheck::Verdict::kFault) on_fault(check_->fault());
      }) {}

BackgroundPackCheck::~BackgroundPackCheck() {
  stop_.store(true, std::memory_order_relaxed);
  end_idle_priority(thread_.native_handle());
  thread_.join();
}

}  // namespace octavo
