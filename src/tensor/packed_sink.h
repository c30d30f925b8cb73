// Where packed weights go, piece after piece: memory, or a file through a bounded buffer.
#pragma once
#include <cstddef>
#include <cstdint>

namespace octavo {

class PackedSink {
 public:
  virtual ~PackedSink() = default;
  /// Room for the next `bytes`, 64-byte aligned.
  [[nodiscard]] virtual std::byte* room(std::uint64_t bytes) = 0;
  /// The room is filled. False: the sink takes no more.
  [[nodiscard]] virtual bool put() = 0;
};

}  // namespace octavo
