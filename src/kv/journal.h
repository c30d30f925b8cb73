// The undo journal of an open plan: one entry per change, popped in reverse. Pool and tables share it, so that one
// height names one state of both.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace octavo {

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
    kFirstPage,  // a: group, b: value before
    kSettled,    // a, b: pages zeroed and published before
    // Counters.
    kHit,  // at: tokens
  };
  Kind kind;
  std::uint32_t at = 0, a = 0, b = 0;
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
