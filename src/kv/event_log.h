// Collects KV events while plans are made: what a plan says is cut off again when it is taken back.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "kv/kv_events.h"

namespace octavo {

class EventLog {
 public:
  explicit EventLog(bool on) : on_(on) {}

  struct Mark {
    std::size_t events = 0, hashes = 0, tokens = 0;
  };
  [[nodiscard]] Mark mark() const { return {log_.events.size(), log_.hashes.size(), log_.tokens.size()}; }
  void rewind(const Mark& mark) {
    log_.events.resize(mark.events), log_.hashes.resize(mark.hashes), log_.tokens.resize(mark.tokens);
  }

  /// The block after the last stored one of the same event (`continues`), or the first of a new event.
  void stored(bool continues, GroupId group, const BlockHash& parent, const BlockHash& hash,
              std::span<const TokenId> tokens) {
    if (!on_) return;
    if (!continues) {
      KvEvent& event = add(KvEvent::Kind::kStored, group);
      event.parent = parent;
      event.first_token = static_cast<std::uint32_t>(log_.tokens.size());
    }
    log_.hashes.push_back(hash);
    log_.tokens.insert(log_.tokens.end(), tokens.begin(), tokens.end());
    ++log_.events.back().num_blocks;
  }
  void removed(GroupId group, const BlockHash& hash) {
    if (!on_) return;
    add(KvEvent::Kind::kRemoved, group).num_blocks = 1;
    log_.hashes.push_back(hash);
  }
  void cleared() {
    if (on_) add(KvEvent::Kind::kCleared, {});
  }

  /// All so far, numbered, into `out`, whose memory is used again.
  void take(KvEvents& out) {
    for (KvEvent& event : log_.events) event.number = ++last_number_;
    out.clear();
    std::swap(out, log_);
  }

 private:
  KvEvent& add(KvEvent::Kind kind, GroupId group) {
    KvEvent event{};
    event.kind = kind, event.group = group, event.first_block = static_cast<std::uint32_t>(log_.hashes.size());
    return log_.events.emplace_back(event);
  }

  bool on_;
  std::uint64_t last_number_ = 0;
  KvEvents log_;
};

}  // namespace octavo
