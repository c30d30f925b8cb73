// A row of any length, sixteen lanes at a time. Include after a v16 header.
#pragma once

namespace octavo::OCTAVO_ISA {

struct AllLanes {};
struct FirstLanes {
  std::uint32_t count;  // 1..15
};

static inline V16f load(const float* p, AllLanes) { return load(p); }
static inline V16f load(const float* p, FirstLanes lanes) { return load_first(p, lanes.count); }
static inline void store(float* p, V16f x, AllLanes) { store(p, x); }
static inline void store(float* p, V16f x, FirstLanes lanes) { store_first(p, x, lanes.count); }

/// Calls body(i, lanes) for i = 0, 16, ... below n; only the last call may get FirstLanes.
template <class Body>
static inline void for_lanes(std::uint32_t n, const Body& body) {
  std::uint32_t i = 0;
  for (; i + 16 <= n; i += 16) body(i, AllLanes{});
  if (i < n) body(i, FirstLanes{n - i});
}

}  // namespace octavo::OCTAVO_ISA
