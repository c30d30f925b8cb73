// The undo journal of an open plan: one entry per change, popped in reverse. Pools and tables share it, so that one
// height names one state of all.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace octavo {

/// Blocks that kernels read, or slots of host memory that keep swapped sequences: the same books for both.
enum class Space : std::uint8_t { kDevice, kHost };

struct Undo {
  enum class Kind : std::uint8_t {
    // Pool. `at` is a block.
    kUnlink,   // left the free list; a, b: its neighbours then
    kLink,     // entered the free list
    kRefs,     // a: owners before
    kForget,   // lost its name, which is on the pool's stack
    kPublish,  // got a name
    // Tables. `at` is a seat.
    kSeat,       // taken
    kLeave,      // listed to be given up at commit
    kPush,       // a: group
    kPop,        // a: group, b: block
    kReplace,    // a: group, b: page, c: block before
    kFirstPage,  // a: group, b: value before
    kSettled,    // a, b, c: pages zeroed, pages published and tokens before
    // Counters.
    kHit,  // at: tokens
  };
  Kind kind;
  Space space = Space::kDevice;
  std::uint32_t at = 0, a = 0, b = 0, c = 0;
};

class Journal {
 public:
  void open() { open_ = true; }
  void close() { entries_.clear(), open_ = false; }
  [[nodiscard]] bool is_open() const { return open_; }
  [[nodiscard]] std::size_t height() const { return entries_.size(); }

  void note(const Undo& undo) {
    if (open_) entries_.push_back(undo);
  }
  Undo pop() {
    const Undo last = entries_.back();
    entries_.pop_back();
    return last;
  }

 private:
  std::vector<Undo> entries_;
  bool open_ = false;
};

}  // namespace octavo
