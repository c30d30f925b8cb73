// Persistent workers for parallel regions: one region at a time, tiles handed out by one atomic counter.
//
// The caller is worker 0 and works, too. Which worker takes which tile is a race; no result may depend on it, and by
// the numerics contract none does. Workers spin for a short while after a region, then park; they run with FloatMode.
// Threads: run() is for one caller at a time (the engine thread).
#pragma once
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

namespace octavo {

class ThreadPool {
 public:
  /// With `cpus`, worker w is bound to cpus[w], and once more from the first on if there are more workers; the caller
  /// binds itself by bind_caller().
  explicit ThreadPool(std::uint32_t threads, std::vector<std::uint32_t> cpus = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] std::uint32_t size() const;
  /// The calling thread is worker 0 from now on: binds it, if workers are bound.
  void bind_caller() const;

  /// Calls body(tile, worker) for every tile in [0, tiles); returns when all are done. No allocation.
  template <class Body>
  void run(std::uint32_t tiles, const Body& body) {
    run_erased(
        tiles,
        [](const void* b, std::uint32_t tile, std::uint32_t worker) { (*static_cast<const Body*>(b))(tile, worker); },
        &body);
  }

 private:
  using Job = void (*)(const void* body, std::uint32_t tile, std::uint32_t worker);
  void run_erased(std::uint32_t tiles, Job job, const void* body);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octavo
