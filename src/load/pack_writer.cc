#include "load/pack_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/memory.h"
#include "load/pack_format.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPoll{20};
constexpr std::chrono::seconds kStalled{120};  // also while the disk takes what it was given

Error io_error(const std::string& path, const char* doing, int why) {
  return {ErrorCode::kIo, fmt::format("{}: cannot {}: {}", path, doing, std::strerror(why)), ""};
}

bool is_file(int fd, const std::string& path) {
  struct stat opened {
  }, there{};
  return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &there) == 0 && opened.st_dev == there.st_dev &&
         opened.st_ino == there.st_ino;
}

/// Growing a file beyond the process's limit (ulimit -f) would end it by a signal; here it is an error like others.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal() {
    ::sigemptyset(&signal_);
    ::sigaddset(&signal_, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~NoFileSizeSignal() {
    const timespec at_once{};
    if (::sigismember(&before_, SIGXFSZ) == 0) ::sigtimedwait(&signal_, nullptr, &at_once);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;

 private:
  sigset_t signal_{}, before_{};
};

class FileWriter final : public PackWriter {
 public:
  FileWriter(PackDraft draft, std::string pack_path, PackHeader header)
      : draft_(std::move(draft)), pack_path_(std::move(pack_path)), header_(header), chunk_(XXH3_createState()) {
    OCTAVO_CHECK(chunk_ != nullptr, "memory for a hash's state");
    XXH3_128bits_reset(chunk_.get());
    checksums_.reserve(pack_chunks(header.packed_bytes));
  }

  std::byte* room(std::uint64_t bytes) override {
    if (buffer_.size() < bytes) buffer_ = AlignedBuffer(bytes);
    room_ = bytes;
    return buffer_.data();
  }

  bool put() override {
    if (failure_) return false;
    const std::uint64_t at = header_.packed_offset + done_;
    failure_ = write(buffer_.data(), room_, at);
    if (failure_) return false;
    // Begins to write now what finish() waits for.
    (void)::sync_file_range(draft_.fd(), static_cast<off_t>(at), static_cast<off_t>(room_), SYNC_FILE_RANGE_WRITE);
    add_to_checksums(buffer_.data(), room_);
    done_ += room_;
    return true;
  }

  Result<> finish(const std::string& source_sha256) override {
    if (failure_) return *failure_;
    OCTAVO_CHECK(done_ == header_.packed_bytes, "a pack is finished when it is whole");
    if (done_ % kPackChunkBytes != 0) end_chunk();
    const std::uint64_t table_bytes = checksums_.size() * sizeof(PackChecksum);
    OCTAVO_CHECK(source_sha256.size() == header_.source_sha256.size(), "a SHA-256 in hex");
    std::ranges::copy(source_sha256, header_.source_sha256.begin());
    header_.table_checksum = checksum_of(checksums_.data(), table_bytes);
    header_.header_checksum = checksum_of(header_);
    if (auto failed = write(checksums_.data(), table_bytes, sizeof header_)) return *failed;
    if (auto failed = write(&header_, sizeof header_, 0)) return *failed;
    if (::fdatasync(draft_.fd()) != 0) return io_error(draft_.path(), "write", errno);
    return draft_.become(pack_path_);
  }

 private:
  struct FreeState {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };

  std::optional<Error> write(const void* data, std::uint64_t bytes, std::uint64_t at) {
    const NoFileSizeSignal no_signal;
    const auto* from = static_cast<const std::byte*>(data);
    while (bytes > 0) {
      const ssize_t n = ::pwrite(draft_.fd(), from, bytes, static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return io_error(draft_.path(), "write", n == 0 ? ENOSPC : errno);
      from += n, at += static_cast<std::uint64_t>(n), bytes -= static_cast<std::uint64_t>(n);
    }
    return std::nullopt;
  }

  void add_to_checksums(const std::byte* data, std::uint64_t bytes) {
    std::uint64_t in_chunk = done_ % kPackChunkBytes;
    while (bytes > 0) {
      const std::uint64_t n = std::min(bytes, kPackChunkBytes - in_chunk);
      XXH3_128bits_update(chunk_.get(), data, n);
      data += n, bytes -= n, in_chunk += n;
      if (in_chunk == kPackChunkBytes) end_chunk(), in_chunk = 0;
    }
  }

  void end_chunk() {
    const XXH128_hash_t hash = XXH3_128bits_digest(chunk_.get());
    checksums_.push_back({hash.low64, hash.high64});
    XXH3_128bits_reset(chunk_.get());
  }

  PackDraft draft_;
  std::string pack_path_;
  PackHeader header_;
  AlignedBuffer buffer_;
  std::uint64_t room_ = 0, done_ = 0;
  std::unique_ptr<XXH3_state_t, FreeState> chunk_;
  std::vector<PackChecksum> checksums_;
  std::optional<Error> failure_;
};

}  // namespace

PackDraft::~PackDraft() {
  if (fd_ < 0) return;
  if (is_file(fd_, path_)) ::unlink(path_.c_str());
  ::close(fd_);  // and whoever waits for the lock goes on
}

Result<> PackDraft::become(const std::string& pack_path) {
  if (::rename(path_.c_str(), pack_path.c_str()) != 0) return io_error(pack_path, "put the pack in its place", errno);
  return Ok{};
}

Result<PackDraft> lock_draft(const std::string& path, const PackCache::Waiting& waiting) {
  struct stat last {};
  auto moved = Clock::now();
  for (;;) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return io_error(path, "create", errno);
    while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) {
        Error error = io_error(path, "lock", errno);
        ::close(fd);
        return error;
      }
      struct stat now {};
      ::fstat(fd, &now);
      if (now.st_ino != last.st_ino || now.st_mtim.tv_sec != last.st_mtim.tv_sec) last = now, moved = Clock::now();
      if (Clock::now() - moved > kStalled) {
        ::close(fd);
        return Error{ErrorCode::kIo, fmt::format("{}: another process has it and does not get on", path), ""};
      }
      if (waiting) waiting(static_cast<std::uint64_t>(now.st_blocks) * 512);
      std::this_thread::sleep_for(kPoll);
    }
    if (is_file(fd, path)) return PackDraft(path, fd);
    ::close(fd);  // it has become the pack, or was given up
  }
}

void remove_orphan(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) {
    const PackDraft orphan(path, fd);
  } else {
    ::close(fd);
  }
}

Result<std::unique_ptr<PackWriter>> write_pack(PackDraft draft, std::string pack_path, const PackId& id) {
  PackHeader header;
  header.header_bytes = sizeof header;
  header.packed_bytes = id.bytes;
  header.packed_offset = packed_offset_of(id.bytes);
  const std::string layout = pack_layout_digest(id.layout);
  OCTAVO_CHECK(id.source_key.size() == header.source_key.size(), "a SHA-256 in hex");
  std::ranges::copy(id.source_key, header.source_key.begin());
  std::ranges::copy(layout, header.layout.begin());

  const NoFileSizeSignal no_signal;
  if (::ftruncate(draft.fd(), 0) != 0) return io_error(draft.path(), "empty", errno);
  if (::fallocate(draft.fd(), 0, static_cast<off_t>(header.packed_offset), static_cast<off_t>(id.bytes)) != 0 &&
      errno != EOPNOTSUPP && errno != ENOSYS) {
    return io_error(draft.path(), fmt::format("reserve {} MiB", id.bytes >> 20).c_str(), errno);
  }
  return std::unique_ptr<PackWriter>(std::make_unique<FileWriter>(std::move(draft), std::move(pack_path), header));
}

}  // namespace octavo
