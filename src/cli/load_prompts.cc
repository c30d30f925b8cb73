#include "cli/load_prompts.h"

#include <algorithm>
#include <iterator>
#include <random>

namespace octavo {
namespace {

constexpr const char* kWords[] = {
    "the",    "of",    "and",   "to",    "in",     "is",    "you",  "that",  "it",    "he",    "was",  "for",
    "on",     "are",   "as",    "with",  "his",    "they",  "at",   "be",    "this",  "have",  "from", "or",
    "one",    "had",   "by",    "but",   "not",    "what",  "all",  "were",  "we",    "when",  "your", "can",
    "said",   "there", "use",   "an",    "each",   "which", "she",  "do",    "how",   "their", "if",   "will",
    "up",     "other", "about", "out",   "many",   "then",  "them", "these", "so",    "some",  "her",  "would",
    "make",   "like",  "him",   "into",  "time",   "has",   "look", "two",   "more",  "write", "go",   "see",
    "number", "no",    "way",   "could", "people", "my",    "than", "first", "water", "been",  "call", "who"};

enum class Kind : std::uint32_t { kShared, kOwn };

/// What mt19937_64 and seed_seq give is fixed by the standard.
std::mt19937_64 tokens_of(std::uint64_t seed, Kind kind, std::uint64_t id) {
  std::seed_seq sequence{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U),
                         static_cast<std::uint32_t>(kind), static_cast<std::uint32_t>(id),
                         static_cast<std::uint32_t>(id >> 32U)};
  return std::mt19937_64(sequence);
}

}  // namespace

std::vector<std::uint32_t> LoadPrompts::ids(std::size_t index) const {
  const PlannedRequest& request = workload_.requests[index];
  const std::uint32_t first = vocab_ / 10, range = vocab_ - first;
  std::vector<std::uint32_t> ids;
  ids.reserve(request.prompt_tokens);
  const auto fill = [&](std::mt19937_64 random, std::size_t until) {
    while (ids.size() < until) ids.push_back(first + static_cast<std::uint32_t>(random() % range));
  };
  for (std::size_t block = 0; block < request.prefix_ids.size() && ids.size() < request.prompt_tokens; ++block) {
    const std::size_t end = (block + 1) * std::size_t{workload_.prefix_block_tokens};
    fill(tokens_of(seed_, Kind::kShared, request.prefix_ids[block]), std::min<std::size_t>(end, request.prompt_tokens));
  }
  fill(tokens_of(seed_, Kind::kOwn, index), request.prompt_tokens);
  return ids;
}

std::string LoadPrompts::text(std::size_t index) const {
  std::string text;
  for (const std::uint32_t id : ids(index)) {
    if (!text.empty()) text += ' ';
    text += kWords[id % std::size(kWords)];
  }
  return text;
}

}  // namespace octavo
