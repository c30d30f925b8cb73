#include "base/resident.h"

#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace octavo {
namespace {

struct Mapping {
  std::uintptr_t begin = 0, end = 0;
  bool is_file = false, is_stack = false;
};

/// "7f..-7f.. rw-p 00000000 fd:01 1234  /path": the first line of a mapping.
std::optional<Mapping> parse_mapping(const std::string& line, std::uint64_t stack_bytes) {
  Mapping out;
  unsigned long long begin = 0, end = 0;
  char permissions[5] = "";
  int path_at = 0;
  if (std::sscanf(line.c_str(), "%llx-%llx %4s %*s %*s %*s %n", &begin, &end, permissions, &path_at) != 3) {
    return std::nullopt;
  }
  out.begin = begin, out.end = end;
  const std::string_view path = std::string_view(line).substr(std::min<std::size_t>(path_at, line.size()));
  out.is_file = path.starts_with('/') || path == "[vdso]";
  // The stacks of threads are mappings of just this size.
  out.is_stack = path == "[stack]" || (path.empty() && permissions[1] == 'w' && out.end - out.begin == stack_bytes);
  return out;
}

/// "Rss:      1234 kB"
std::optional<std::uint64_t> kilobytes(std::string_view line, std::string_view key) {
  if (!line.starts_with(key)) return std::nullopt;
  line.remove_prefix(std::min(line.find_first_not_of(" \t", key.size()), line.size()));
  std::uint64_t number = 0;
  std::from_chars(line.data(), line.data() + line.size(), number);
  return number * 1024;
}

std::uint64_t default_stack_bytes() {
  pthread_attr_t attributes;
  std::size_t bytes = 0;
  if (pthread_getattr_default_np(&attributes) == 0) {
    pthread_attr_getstacksize(&attributes, &bytes);
    pthread_attr_destroy(&attributes);
  }
  return bytes;
}

bool touches(const Mapping& mapping, const std::vector<std::span<const std::byte>>& parts) {
  return std::ranges::any_of(parts, [&](std::span<const std::byte> part) {
    const auto begin = reinterpret_cast<std::uintptr_t>(part.data());
    return begin < mapping.end && begin + part.size() > mapping.begin;
  });
}

struct Pages {
  std::uint64_t resident = 0, shared = 0;  // shared: of files
  std::uint64_t bytes = 0;                 // of one
};

Pages count_pages() {
  std::ifstream statm("/proc/self/statm");
  Pages pages{0, 0, static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))};
  std::uint64_t mapped = 0;
  statm >> mapped >> pages.resident >> pages.shared;
  return pages;
}

}  // namespace

ResidentMemory resident_memory(std::span<const std::vector<std::span<const std::byte>>> ranges) {
  ResidentMemory out;
  out.ranges.resize(ranges.size());
  const std::uint64_t stack_bytes = default_stack_bytes();
  std::ifstream smaps("/proc/self/smaps");
  Mapping mapping;
  for (std::string line; std::getline(smaps, line);) {
    if (const auto next = parse_mapping(line, stack_bytes)) {
      mapping = *next;
    } else if (const auto rss = kilobytes(line, "Rss:")) {
      const auto range = std::ranges::find_if(ranges, [&](const auto& parts) { return touches(mapping, parts); });
      out.total += *rss;
      (range != ranges.end() ? out.ranges[static_cast<std::size_t>(range - ranges.begin())]
       : mapping.is_file     ? out.files
       : mapping.is_stack    ? out.stacks
                             : out.other) += *rss;
    }
  }
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (const auto bytes = kilobytes(line, "VmPTE:")) out.page_tables = *bytes;
  }
  return out;
}

std::uint64_t resident_bytes() {
  const Pages pages = count_pages();
  return pages.resident * pages.bytes;
}

std::uint64_t resident_anonymous_bytes() {
  const Pages pages = count_pages();
  return (pages.resident - std::min(pages.resident, pages.shared)) * pages.bytes;
}

std::uint64_t heap_bytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

}  // namespace octavo
