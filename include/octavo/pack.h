// The pack cache from outside: is a model in it, and see to it that it is. docs/cli.md says where it lies.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "octavo/config.h"
#include "octavo/engine.h"
#include "octavo/result.h"

namespace octavo {

struct PackReport {
  std::string path;          // of the pack
  std::uint64_t bytes = 0;   // of the packed weights
  std::string model_sha256;  // of all bytes of the model's files; of several: of their SHA-256s
  bool was_there = false;    // and has been checked, every byte, against its checksums and the model
  std::string replaced;      // why one that was there had to go; empty: none did
  std::chrono::milliseconds took{};
};

/// Packs config.model unless its pack is there and sound. Of `config`, model, numerics, threads and cache_bytes
/// count. What keeps the pack off the disk is an error here.
[[nodiscard]] Result<PackReport> pack_model(const EngineConfig& config, const Progress& progress = {});

/// The pack of config.model and config.numerics that a start would map; none: it would pack.
[[nodiscard]] std::optional<PackReport> find_pack(const EngineConfig& config);

}  // namespace octavo
