// A pack cache of a test's own, and ways to damage files behind everybody's back.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace octavo::testing {

/// $OCTAVO_CACHE for as long as it lives.
class PackFolder {
 public:
  PackFolder() {
    std::string name = std::filesystem::temp_directory_path() / "octavo-packs-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
    ::setenv("OCTAVO_CACHE", path_.c_str(), 1);
  }
  ~PackFolder() {
    ::setenv("OCTAVO_CACHE", "off", 1);
    std::filesystem::remove_all(path_);
  }
  PackFolder(const PackFolder&) = delete;
  PackFolder& operator=(const PackFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) names.push_back(entry.path().string());
    return names;
  }

 private:
  std::string path_;
};

/// Turns one bit of a file as a failing disk would: its times stay.
inline void flip_bit(const std::string& path, std::uint64_t byte, unsigned bit = 0) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0) << path;
  struct stat before {};
  ::fstat(fd, &before);
  unsigned char value = 0;
  ASSERT_EQ(::pread(fd, &value, 1, static_cast<off_t>(byte)), 1) << path << " at " << byte;
  value = static_cast<unsigned char>(value ^ 1U << bit);
  ASSERT_EQ(::pwrite(fd, &value, 1, static_cast<off_t>(byte)), 1);
  const timespec times[2] = {before.st_atim, before.st_mtim};
  ::futimens(fd, times);
  ::close(fd);
}

}  // namespace octavo::testing
