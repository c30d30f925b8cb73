#include "capacity/process_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/binary_size.h"
#include "kv/kv_manager.h"
#include "sched/serving_setup.h"

namespace octavo {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kCodeBytes = 12 * kMiB;
constexpr std::uint64_t kTokenBytes = 200;  // of a tokenizer: text, merges, look-up

}  // namespace

std::vector<MemoryTag> process_memory(const ModelShape& model, const EngineConfig& config, std::uint32_t threads) {
  std::vector<MemoryTag> tags;
  tags.push_back({"code", kCodeBytes, "the program and its libraries, as far as they are used"});
  tags.push_back(
      {"tokenizer", kTokenBytes * model.vocab_size,
       fmt::format("{} tokens of about {} bytes: texts, merges, look-up", grouped(model.vocab_size), kTokenBytes)});
  (void)config, (void)threads;
  return tags;
}

std::uint64_t bookkeeping_bytes(const EngineConfig& config, std::uint64_t num_blocks) {
  KvConfig books;
  books.block_tokens = config.block_tokens;
  books.num_blocks = static_cast<std::uint32_t>(std::min<std::uint64_t>(num_blocks, UINT32_MAX));
  books.prefix_caching = prefix_caching_on(config);
  return KvManager::bytes(books);
}

}  // namespace octavo
