#include "engine/load_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <optional>
#include <span>
#include <utility>

#include "base/memory.h"
#include "base/topology.h"
#include "load/open_checkpoint.h"
#include "load/pack_cache.h"
#include "load/source_key.h"
#include "octavo/pack.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;

std::chrono::milliseconds since(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
}

Result<PackCache> cache_of(const EngineConfig& config) {
  std::string folder = PackCache::default_folder();
  if (!folder.empty()) return PackCache(std::move(folder), config.cache_bytes);
  return Error{ErrorCode::kUnavailable, "there is no pack cache: OCTAVO_CACHE is off, or neither it nor HOME is set",
               ""};
}

PackId id_of(const Checkpoint& checkpoint, const WeightsPlan& plan) {
  return {checkpoint.info().path, checkpoint.source_key(), plan.description(), plan.bytes()};
}

class MemorySink final : public PackedSink {
 public:
  explicit MemorySink(std::byte* begin) : next_(begin) {}
  std::byte* room(std::uint64_t bytes) override {
    room_ = bytes;
    return next_;
  }
  bool put() override {
    next_ += room_;
    return true;
  }

 private:
  std::byte* next_;
  std::uint64_t room_ = 0;
};

/// One reading of a checkpoint's files: packs them into one sink or another while their SHA-256 is made beside it.
class Packing {
 public:
  Packing(const Checkpoint& checkpoint, const WeightsPlan& plan, ThreadPool& pool, const Progress& progress)
      : checkpoint_(checkpoint),
        plan_(plan),
        pool_(pool),
        progress_(progress),
        sha256_(std::async(std::launch::async, [&checkpoint] {
                  return octavo::source_sha256(checkpoint.files());
                }).share()) {}

  [[nodiscard]] const std::string& source_sha256() const { return sha256_.get(); }

  /// False: the sink took no more.
  [[nodiscard]] bool pack(PackedSink& sink) const {
    return plan_.pack(sink, pool_, [this](std::uint64_t done, std::uint64_t total) {
      if (progress_) progress_("packing weights", done, total);
    });
  }

  /// What was read before and after a change does not fit together.
  [[nodiscard]] Result<> check_unchanged() const {
    for (const FileMap* file : checkpoint_.files()) {
      OCTAVO_TRY(const FileIdentity now, identity_of(file->fd(), file->path()));
      if (now != file->identity()) {
        return Error{ErrorCode::kIo, file->path() + ": the file was changed while it was read: load it again", ""};
      }
    }
    return Ok{};
  }

  [[nodiscard]] Result<PackFile> keep(PackWriter& writer, const PackCache& cache, const PackId& id) const {
    (void)pack(writer);  // finish() tells what went wrong
    OCTAVO_CHECK_OK(check_unchanged());
    OCTAVO_CHECK_OK(writer.finish(source_sha256()));
    return cache.find(id);
  }

 private:
  const Checkpoint& checkpoint_;
  const WeightsPlan& plan_;
  ThreadPool& pool_;
  const Progress& progress_;
  std::shared_future<std::string> sha256_;
};

PackCache::Waiting tell_waiting(const Progress& progress, std::uint64_t total) {
  return [&progress, total](std::uint64_t done) {
    if (progress) progress("waiting for another process that packs", done, total);
  };
}

/// File pages are small where the kernel keeps no large ones, which costs decode a tenth or more: up to this size, a
/// copy in huge pages is worth the tenths of a second and the memory that it takes. Larger packs are mapped, and
/// shared.
constexpr std::uint64_t kMostCopiedBytes = std::uint64_t{256} << 20;

WeightStorage copy_of(const PackFile& pack, ThreadPool& pool) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  const std::span<const std::byte> packed = pack.packed();
  const auto copy = std::make_shared<AlignedBuffer>(packed.size());
  pool.run(static_cast<std::uint32_t>((packed.size() + kPiece - 1) / kPiece), [&](std::uint32_t i, std::uint32_t) {
    const std::size_t begin = i * kPiece, bytes = std::min(kPiece, packed.size() - begin);
    std::memcpy(copy->data() + begin, packed.data() + begin, bytes);
  });
  for (std::size_t i = 0; i < pack.num_chunks(); ++i) pack.let_go(i);
  return {copy, copy->data()};
}

LoadedWeights from_pack(const WeightsPlan& plan, const std::shared_ptr<const PackFile>& pack, ThreadPool& pool) {
  LoadedWeights loaded;
  const std::span<const std::byte> packed = pack->packed();
  loaded.report.mapped = packed.size() > kMostCopiedBytes;
  const WeightStorage storage = loaded.report.mapped ? WeightStorage(pack, packed.data()) : copy_of(*pack, pool);
  loaded.weights = std::make_unique<Weights>(plan.bind(static_cast<const std::byte*>(storage.get()), storage));
  loaded.source_sha256 = pack->source_sha256();
  loaded.report.pack = pack->path();
  return loaded;
}

LoadedWeights from_pack_of_before(const WeightsPlan& plan, const Checkpoint& checkpoint, PackFile file,
                                  ThreadPool& pool) {
  const auto pack = std::make_shared<const PackFile>(std::move(file));
  LoadedWeights loaded = from_pack(plan, pack, pool);
  loaded.report.cached = true;
  loaded.check = std::make_unique<PackCheck>(pack, checkpoint.files(), loaded.report.mapped);
  return loaded;
}

/// The weights from the cache, packed into it if need be. An error tells why it does not serve.
Result<LoadedWeights> through_cache(const EngineConfig& config, const Checkpoint& checkpoint, const WeightsPlan& plan,
                                    std::optional<Packing>& packing, ThreadPool& pool, const Progress& progress) {
  OCTAVO_TRY(const PackCache cache, cache_of(config));
  const PackId id = id_of(checkpoint, plan);
  auto found = cache.find(id);
  if (found) return from_pack_of_before(plan, checkpoint, std::move(*found), pool);
  OCTAVO_TRY(PackCache::Claim claim, cache.claim(id, tell_waiting(progress, plan.bytes())));
  if (claim.found) return from_pack_of_before(plan, checkpoint, std::move(*claim.found), pool);
  packing.emplace(checkpoint, plan, pool, progress);
  OCTAVO_TRY(PackFile packed, packing->keep(*claim.writer, cache, id));
  LoadedWeights loaded = from_pack(plan, std::make_shared<const PackFile>(std::move(packed)), pool);
  if (found.error().code != ErrorCode::kNotFound) loaded.report.notice = found.error().message + ": packed again";
  return loaded;
}

LoadedWeights in_memory(const WeightsPlan& plan, const Packing& packing) {
  auto storage = std::make_shared<AlignedBuffer>(plan.bytes());
  MemorySink sink(storage->data());
  (void)packing.pack(sink);
  LoadedWeights loaded;
  loaded.source_sha256 = packing.source_sha256();
  loaded.weights = std::make_unique<Weights>(plan.bind(storage->data(), storage));
  return loaded;
}

Result<LoadedWeights> load(const EngineConfig& config, const Checkpoint& checkpoint, ThreadPool& pool,
                           const Progress& progress) {
  const WeightsPlan plan(checkpoint, config.numerics);
  std::optional<Packing> packing;
  std::string notice;
  if (config.pack_cache && !PackCache::switched_off()) {
    auto loaded = through_cache(config, checkpoint, plan, packing, pool, progress);
    if (loaded) return loaded;
    notice = "packed in memory: " + loaded.error().message;
  }
  if (!packing) packing.emplace(checkpoint, plan, pool, progress);
  LoadedWeights loaded = in_memory(plan, *packing);
  OCTAVO_CHECK_OK(packing->check_unchanged());
  loaded.report.notice = std::move(notice);
  return loaded;
}

PackReport describe(const PackFile& pack) {
  PackReport report;
  report.path = pack.path();
  report.bytes = pack.packed().size();
  report.model_sha256 = pack.source_sha256();
  return report;
}

/// Whether a pack that is there may stay; else why not.
Result<> check(const Checkpoint& checkpoint, const std::shared_ptr<const PackFile>& pack, const Progress& progress) {
  PackCheck check(pack, checkpoint.files(), false);
  const auto verdict = check.run([&](std::uint64_t done) {
    if (progress) progress("checking the pack", done, check.total_bytes());
    return true;
  });
  if (verdict == PackCheck::Verdict::kSound) return Ok{};
  if (verdict == PackCheck::Verdict::kFault) return Error{ErrorCode::kCorrupt, check.fault(), ""};
  return Error{ErrorCode::kIo, checkpoint.info().path + ": the model was changed while it was read, or cannot be read",
               ""};
}

}  // namespace

Result<LoadedWeights> load_weights(const EngineConfig& config, const Checkpoint& checkpoint, ThreadPool& pool,
                                   const Progress& progress) {
  const auto begin = Clock::now();
  auto loaded = load(config, checkpoint, pool, progress);
  if (loaded) loaded->report.took = since(begin);
  return loaded;
}

Result<PackReport> pack_model(const EngineConfig& config, const Progress& progress) {
  const auto begin = Clock::now();
  OCTAVO_TRY(const PackCache cache, cache_of(config));
  OCTAVO_TRY(const std::unique_ptr<Checkpoint> checkpoint, open_checkpoint(config.model));
  const WeightsPlan plan(*checkpoint, config.numerics);
  const PackId id = id_of(*checkpoint, plan);
  const auto before = cache.find(id);
  std::string replaced = before || before.error().code == ErrorCode::kNotFound ? "" : before.error().message;
  for (;;) {
    OCTAVO_TRY(PackCache::Claim claim, cache.claim(id, tell_waiting(progress, plan.bytes())));
    if (claim.found) {
      const auto pack = std::make_shared<const PackFile>(std::move(*claim.found));
      const auto sound = check(*checkpoint, pack, progress);
      if (!sound && sound.error().code != ErrorCode::kCorrupt) return sound.error();
      if (!sound) {
        replaced = sound.error().message;
        continue;
      }
      PackReport report = describe(*pack);
      report.was_there = true;
      report.took = since(begin);
      return report;
    }
    ThreadPool pool(threads_or_cores(config.threads));
    const Packing packing(*checkpoint, plan, pool, progress);
    OCTAVO_TRY(const PackFile pack, packing.keep(*claim.writer, cache, id));
    PackReport report = describe(pack);
    report.replaced = std::move(replaced);
    report.took = since(begin);
    return report;
  }
}

std::optional<PackReport> find_pack(const EngineConfig& config) {
  const auto cache = cache_of(config);
  const auto checkpoint = open_checkpoint(config.model);
  if (!cache || !checkpoint) return std::nullopt;
  const auto pack = cache->find(id_of(**checkpoint, WeightsPlan(**checkpoint, config.numerics)));
  return pack ? std::optional(describe(*pack)) : std::nullopt;
}

}  // namespace octavo
