#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/memory.h"
#include "base/topology.h"

namespace octavo {
namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

/// This process's cgroup folders from its own up to the root of the hierarchy: limits of any of them bind.
/// `controller` is empty for version 2 (one unified hierarchy).
std::vector<std::string> cgroup_folders(const std::string& controller) {
  std::ifstream file("/proc/self/cgroup");
  std::vector<std::string> folders;
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controllers != (controller.empty() ? ",," : controllers) ||
        controllers.find("," + controller + ",") == std::string::npos) {
      continue;
    }
    const std::string root = controller.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + controller;
    std::string path = line.substr(second + 1);
    while (path.size() > 1) {
      folders.push_back(root + path);
      path.resize(path.rfind('/'));
    }
    folders.push_back(root);
  }
  return folders;
}

std::uint64_t read_number(const std::string& path) {
  const auto line = first_line(path);
  if (!line || line->empty() || *line == "max") return kNoLimit;
  return std::strtoull(line->c_str(), nullptr, 10);
}

/// What a cgroup still allows: limit - usage, where reclaimable file pages do not count as used.
std::uint64_t memory_left_in(const std::string& folder, const char* limit_file, const char* usage_file) {
  const std::uint64_t limit = read_number(folder + "/" + limit_file);
  if (limit == kNoLimit) return kNoLimit;
  std::uint64_t used = read_number(folder + "/" + usage_file);
  if (used == kNoLimit) return limit;
  std::ifstream stat(folder + "/memory.stat");
  for (std::string key; stat >> key;) {
    std::uint64_t value = 0;
    stat >> value;
    if (key == "inactive_file" || key == "active_file") used -= std::min(used, value);
  }
  return limit - std::min(limit, used);
}

double cpu_quota() {
  double cores = std::numeric_limits<double>::infinity();
  for (const std::string& folder : cgroup_folders("")) {
    const auto line = first_line(folder + "/cpu.max");
    if (!line) continue;
    std::istringstream fields(*line);
    double quota = 0;
    double period = 0;
    if (fields >> quota >> period && period > 0) cores = std::min(cores, quota / period);
  }
  for (const std::string& folder : cgroup_folders("cpu")) {
    const std::uint64_t quota = read_number(folder + "/cpu.cfs_quota_us");
    const std::uint64_t period = read_number(folder + "/cpu.cfs_period_us");
    if (quota == kNoLimit || period == kNoLimit || period == 0 || static_cast<std::int64_t>(quota) <= 0) continue;
    cores = std::min(cores, static_cast<double>(quota) / static_cast<double>(period));
  }
  return cores;
}

constexpr std::size_t kPage = 4096, kHugePage = std::size_t{2} << 20;

}  // namespace

std::uint32_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cores = ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  cores = std::min(cores, static_cast<int>(std::ceil(std::min(cpu_quota(), 1e6))));
  return static_cast<std::uint32_t>(std::max(cores, 1));
}

std::uint64_t available_memory_bytes() {
  std::uint64_t available = kNoLimit;
  std::ifstream meminfo("/proc/meminfo");
  for (std::string line; std::getline(meminfo, line);) {
    if (line.rfind("MemAvailable:", 0) == 0) available = std::strtoull(line.c_str() + 13, nullptr, 10) * 1024;
  }
  for (const std::string& folder : cgroup_folders("")) {
    available = std::min(available, memory_left_in(folder, "memory.max", "memory.current"));
  }
  for (const std::string& folder : cgroup_folders("memory")) {
    available = std::min(available, memory_left_in(folder, "memory.limit_in_bytes", "memory.usage_in_bytes"));
  }
  return available;
}

AlignedBuffer::AlignedBuffer(std::size_t bytes) {
  if (bytes == 0) return;
  // Over-map and trim, so that large buffers start on a huge page.
  const std::size_t size = (bytes + kPage - 1) / kPage * kPage;
  const std::size_t slack = size >= kHugePage ? kHugePage : 0;
  void* mapped = ::mmap(nullptr, size + kPage + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* begin = static_cast<std::byte*>(mapped);
  if (slack != 0) {
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    const std::size_t skip = (kHugePage - address % kHugePage) % kHugePage;
    if (skip != 0) ::munmap(begin, skip);
    if (skip != slack) ::munmap(begin + skip + size + kPage, slack - skip);
    begin += skip;
    ::madvise(begin, size, MADV_HUGEPAGE);
  }
  ::mprotect(begin + size, kPage, PROT_NONE);
  bytes_ = {begin, size};
}

AlignedBuffer::~AlignedBuffer() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size() + kPage);
}

}  // namespace octavo
