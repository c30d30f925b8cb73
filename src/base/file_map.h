// A whole file, read-only, in the address space.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "octavo/result.h"

namespace octavo {

class FileMap {
 public:
  /// Fails with kNotFound or kIo, naming the path and what the system said. Directories and empty files are refused.
  [[nodiscard]] static Result<FileMap> open(const std::string& path);
  FileMap(FileMap&& other) noexcept;
  FileMap& operator=(FileMap&& other) noexcept;
  ~FileMap();

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  FileMap(std::string path, std::span<const std::byte> bytes) : path_(std::move(path)), bytes_(bytes) {}
  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace octavo
