#include "capacity/process_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/binary_size.h"
#include "kv/kv_manager.h"
#include "sched/serving_setup.h"

namespace octavo {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20, kKiB = 1024;

// Measured with the server on SmolLM2 and Gemma 3 under load; tests/cli/test_memory.py holds it to them.
constexpr std::uint64_t kCodeBytes = 16 * kMiB;  // what is used of program and libraries
constexpr std::uint64_t kTokenBytes = 120;       // of a tokenizer: text, merges, look-up
constexpr std::uint64_t kSampledBytes = 28;      // a token and thread: masses, candidates, counts, edits
constexpr std::uint64_t kServerBytes = 4 * kMiB, kRequestBytes = 32 * kKiB;
constexpr std::uint64_t kStackBytes = 64 * kKiB;
constexpr std::uint32_t kOtherThreads = 6;  // engine, HTTP, background work

}  // namespace

std::vector<MemoryTag> process_memory(const ModelShape& model, const EngineConfig& config, std::uint32_t threads) {
  std::vector<MemoryTag> tags;
  const auto add = [&](const char* tag, std::uint64_t bytes, std::string why) {
    tags.push_back({tag, bytes, std::move(why)});
  };
  const std::string vocabulary = grouped(model.vocab_size) + " tokens";
  add("code", kCodeBytes, "the program and its libraries, as far as they are used");
  add("tokenizer", kTokenBytes * model.vocab_size, vocabulary + ": texts, merges, look-up");
  add("sampling", kSampledBytes * model.vocab_size * threads,
      fmt::format("{} for each of {} threads", vocabulary, threads));
  add("requests", kServerBytes + kRequestBytes * config.max_num_seqs,
      fmt::format("prompts, answers and connections of {} sequences", config.max_num_seqs));
  add("stacks", kStackBytes * (threads + kOtherThreads), fmt::format("of {} threads", threads + kOtherThreads));
  return tags;
}

MemoryTag page_tables(std::uint64_t mapped_bytes) {
  MemoryTag tag{"page tables", mapped_bytes / 512 + kMiB / 2, "8 bytes for each page of 4 KiB, kept by the kernel"};
  tag.in_rss = false;
  return tag;
}

std::uint64_t bookkeeping_bytes(const EngineConfig& config, std::uint64_t num_blocks) {
  KvConfig books;
  books.block_tokens = config.block_tokens;
  books.num_blocks = static_cast<std::uint32_t>(std::min<std::uint64_t>(num_blocks, UINT32_MAX));
  books.prefix_caching = prefix_caching_on(config);
  return KvManager::bytes(books);
}

}  // namespace octavo
