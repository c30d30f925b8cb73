// octavo pack: packs a model ahead of its first start, or checks the pack that is there.
#include "octavo/pack.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/format.h"
#include "cli/model_names.h"
#include "cli/progress.h"
#include "cli/validators.h"

namespace octavo {
namespace {

struct PackOptions {
  std::string model, cache_bytes;
  Numerics numerics = Numerics::kInt8;
  std::uint32_t threads = 0;
};

Result<> pack(const PackOptions& options) {
  EngineConfig config;
  config.numerics = options.numerics;
  config.threads = options.threads;
  if (!options.cache_bytes.empty()) {
    OCTAVO_TRY(config.cache_bytes, parse_bytes(options.cache_bytes));
  }
  OCTAVO_TRY(config.model, resolve_model(options.model));
  PackReport report;
  {
    ProgressBar bar(ProgressBar::Unit::kBytes);
    OCTAVO_TRY(report, pack_model(config, [&bar](const char* what, std::uint64_t done, std::uint64_t total) {
                 bar.update(what, done, total);
               }));
  }
  if (!report.replaced.empty()) fmt::print(stderr, "notice: {}: packed again\n", report.replaced);
  fmt::print("{} in {:.1f} s: {}, {}\n", report.was_there ? "packed before, checked" : "packed",
             static_cast<double>(report.took.count()) / 1e3, human_bytes(report.bytes), report.path);
  fmt::print("SHA-256 of the model: {}\n", report.model_sha256);
  return Ok{};
}

}  // namespace

Command pack_command(CLI::App& program) {
  auto options = std::make_shared<PackOptions>();
  CLI::App* app = program.add_subcommand("pack", "Pack a model for its next starts, or check the pack it has");
  app->add_option("MODEL", options->model, "smollm2, gemma3-270m, a GGUF file or a model folder")->required();
  add_numerics_option(*app, options->numerics);
  app->add_option("--cache-bytes", options->cache_bytes, "what the folder of packed weights may hold (default 64GiB)");
  app->add_option("--threads", options->threads, "default: the cores this process may use")
      ->check(whole_number(1, 1024));
  return {app, [options] { return pack(*options); }};
}

}  // namespace octavo
