// A whole file, read-only, in the address space.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "octavo/result.h"

namespace octavo {

/// Tells one state of a file from another, as far as the file system does.
struct FileIdentity {
  std::uint64_t size = 0, inode = 0;
  std::int64_t mtime_ns = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
/// Of an open file.
[[nodiscard]] Result<FileIdentity> identity_of(int fd, const std::string& path);

class FileMap {
 public:
  /// Fails with kNotFound or kIo, naming the path and what the system said. Directories and empty files are refused.
  [[nodiscard]] static Result<FileMap> open(const std::string& path);
  FileMap(FileMap&& other) noexcept;
  FileMap& operator=(FileMap&& other) noexcept;
  ~FileMap();

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] const FileIdentity& identity() const { return identity_; }  // when it was opened

 private:
  FileMap(std::string path, int fd, const FileIdentity& identity, std::span<const std::byte> bytes)
      : path_(std::move(path)), fd_(fd), identity_(identity), bytes_(bytes) {}
  std::string path_;
  int fd_;
  FileIdentity identity_;
  std::span<const std::byte> bytes_;
};

}  // namespace octavo
