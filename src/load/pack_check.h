// The part of trusting a pack that takes reading all of it: the checksum of every chunk, and the SHA-256 of the whole
// model that it was made from.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/file_map.h"
#include "load/pack_cache.h"

namespace octavo {

/// A pack in use and the model's files, held open: what became of their names does not matter.
class PackCheck {
 public:
  /// `in_use`: the pack's own pages serve as weights. Else none stays in memory.
  PackCheck(std::shared_ptr<const PackFile> pack, std::span<const FileMap* const> sources, bool in_use);
  ~PackCheck();
  PackCheck(const PackCheck&) = delete;
  PackCheck& operator=(const PackCheck&) = delete;

  enum class Verdict : std::uint8_t {
    kSound,
    kFault,    // fault() says what is wrong; the pack's file was removed, so that the next start packs again
    kUnknown,  // the model's files were changed after the pack was opened, or cannot be read: they prove nothing
    kStopped,
  };
  /// Asked now and then whether to stop; told how many of total_bytes() are done.
  using GoOn = std::function<bool(std::uint64_t done)>;
  void read_ahead(const GoOn& go_on) const;  // the pack, in the order of its use
  [[nodiscard]] Verdict run(const GoOn& go_on);
  [[nodiscard]] const std::string& fault() const { return fault_; }
  [[nodiscard]] std::uint64_t total_bytes() const;

 private:
  struct Source {
    std::string path;
    FileIdentity identity;
    int fd;
  };
  [[nodiscard]] Verdict found(std::string fault);

  std::shared_ptr<const PackFile> pack_;
  std::vector<Source> sources_;
  bool in_use_;
  std::string fault_;
};

/// Runs a PackCheck on a thread that gets what nobody else wants of CPU and disk. Before that it has the system
/// read the pack ahead.
/// Threads: `on_fault` is called on that thread, at most once, and not after the destructor.
class BackgroundPackCheck {
 public:
  using OnFault = std::function<void(const std::string& fault)>;
  BackgroundPackCheck(std::unique_ptr<PackCheck> check, OnFault on_fault);
  ~BackgroundPackCheck();  // does not wait for the check to end
  BackgroundPackCheck(const BackgroundPackCheck&) = delete;
  BackgroundPackCheck& operator=(const BackgroundPackCheck&) = delete;

 private:
  std::unique_ptr<PackCheck> check_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace octavo
