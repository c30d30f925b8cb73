#include "base/file_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace octavo {
namespace {

Error system_error(ErrorCode code, const std::string& path, const char* doing) {
  return {code, path + ": cannot " + doing + ": " + std::strerror(errno), ""};
}

FileIdentity identity_of(const struct stat& info) {
  return {static_cast<std::uint64_t>(info.st_size), static_cast<std::uint64_t>(info.st_ino),
          std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
}

}  // namespace

Result<FileIdentity> identity_of(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return system_error(ErrorCode::kIo, path, "read its size");
  return identity_of(info);
}

Result<FileMap> FileMap::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_error(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, path, "open");
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    Error error = system_error(ErrorCode::kIo, path, "read its size");
    ::close(fd);
    return error;
  }
  if (!S_ISREG(info.st_mode) || info.st_size == 0) {
    ::close(fd);
    const char* what = S_ISREG(info.st_mode) ? ": the file is empty" : ": not a regular file";
    return Error{ErrorCode::kIo, path + what, ""};
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (address == MAP_FAILED) {
    Error error = system_error(ErrorCode::kIo, path, "map");
    ::close(fd);
    return error;
  }
  return FileMap(path, fd, identity_of(info), {static_cast<const std::byte*>(address), size});
}

FileMap::FileMap(FileMap&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      identity_(other.identity_),
      bytes_(std::exchange(other.bytes_, {})) {}

FileMap& FileMap::operator=(FileMap&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(identity_, other.identity_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

FileMap::~FileMap() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace octavo
