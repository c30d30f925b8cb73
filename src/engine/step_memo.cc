#include "engine/step_memo.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "base/topology.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTitle = "octavo step costs 1";  // nanoseconds, in the order of StepCosts, then of a copy
constexpr double kMostNanos = 1e12;

/// FNV-1a: stable between builds, and a clash costs a little speed.
std::uint32_t hash_of(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

}  // namespace

std::string step_memo_path(const EngineReport& report) {
  if (report.weights.pack.empty()) return "";
  const std::string machine = fmt::format("{} {} {} {} {}", cpu_name(), report.isa, report.threads,
                                          kv_type_name(report.kv_type), report.block_tokens);
  return fmt::format("{}-{:08x}.steps", fs::path(report.weights.pack).replace_extension().string(), hash_of(machine));
}

std::optional<StepMeasurement> recall_steps(const std::string& path) {
  struct stat memo {
  }, program{};
  if (::stat(path.c_str(), &memo) != 0 || ::stat("/proc/self/exe", &program) != 0) return std::nullopt;
  if (memo.st_mtim.tv_sec <= program.st_ctim.tv_sec) return std::nullopt;  // other kernels may have been measured
  std::ifstream file(path);
  std::string title;
  std::array<double, 6> nanos{};
  if (!std::getline(file, title) || title != kTitle) return std::nullopt;
  for (double& n : nanos) {
    if (!(file >> n) || !(n >= 0 && n <= kMostNanos)) return std::nullopt;
  }
  StepMeasurement out;
  out.costs = {nanos[0], nanos[1], nanos[2], nanos[3], nanos[4]};
  out.copy_per_block = Nanos(nanos[5]);
  out.complete = true;
  return out;
}

void remember_steps(const std::string& path, const StepMeasurement& measured) {
  if (path.empty()) return;
  const StepCosts& c = measured.costs;
  const std::string draft = fmt::format("{}.{}", path, ::getpid());
  std::ofstream file(draft);
  file << fmt::format("{}\n{} {} {} {} {} {}\n", kTitle, c.step, c.token, c.logit_row, c.chunk_key, c.single_key,
                      measured.copy_per_block.count());
  file.close();
  std::error_code ignored;
  if (file) {
    fs::rename(draft, path, ignored);
  } else {
    fs::remove(draft, ignored);
  }
}

}  // namespace octavo
