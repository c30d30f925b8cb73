// Prompts of a wanted length, which share as much as a workload says they do.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "octavo/workload.h"

namespace octavo {

/// Chance decides each token; the same for a seed on every machine.
class LoadPrompts {
 public:
  /// Ids are below `vocab` and not of its first tenth, where special tokens mostly stand.
  LoadPrompts(const Workload& workload, std::uint64_t seed, std::uint32_t vocab)
      : workload_(workload), seed_(seed), vocab_(vocab) {}

  /// Of request `index`: as many ids as its prompt has tokens.
  [[nodiscard]] std::vector<std::uint32_t> ids(std::size_t index) const;
  /// As many common words, which most tokenizers take for a token each.
  [[nodiscard]] std::string text(std::size_t index) const;

 private:
  const Workload& workload_;
  std::uint64_t seed_;
  std::uint32_t vocab_;
};

}  // namespace octavo
