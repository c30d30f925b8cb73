#include "base/thread_pool.h"

#include <immintrin.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "base/float_mode.h"
#include "base/topology.h"

namespace octavo {
namespace {

// A region's barrier costs well under a microsecond while workers spin; a parked worker costs a wake-up of tens.
constexpr auto kSpinBeforePark = std::chrono::microseconds(50);
constexpr std::uint32_t kPausesPerLook = 32;

}  // namespace

// `gate` is the whole protocol: bit 31 says that a region is open, the bits below count workers inside it. A worker
// enters by a compare-exchange on an open gate; the caller closes the gate when no tile is left and waits for the count
// alone. So a worker that the system took its core from delays a region only while it holds a tile.
struct ThreadPool::State {
  static constexpr std::uint32_t kOpen = 1U << 31;

  alignas(64) std::atomic<std::uint32_t> gate{0};
  alignas(64) std::atomic<std::uint32_t> next_tile{0};
  alignas(64) std::atomic<std::uint32_t> epoch{0};  // counts regions; workers park on it
  alignas(64) std::atomic<std::uint32_t> parked{0};
  std::atomic<bool> stopping{false};

  // The region's job: written while the gate is closed and empty, read by those who entered it.
  std::uint32_t tiles = 0;
  Job job = nullptr;
  const void* body = nullptr;

  std::vector<std::uint32_t> cpus;  // empty: nobody is bound
  std::vector<std::thread> workers;

  void take_tiles(std::uint32_t worker) {
    for (std::uint32_t tile = next_tile.fetch_add(1, std::memory_order_relaxed); tile < tiles;
         tile = next_tile.fetch_add(1, std::memory_order_relaxed)) {
      job(body, tile, worker);
    }
  }

  void enter_and_work(std::uint32_t worker) {
    std::uint32_t seen = gate.load(std::memory_order_acquire);
    do {
      if ((seen & kOpen) == 0) return;
    } while (!gate.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire));
    take_tiles(worker);
    gate.fetch_sub(1, std::memory_order_release);
  }

  /// Returns the new epoch: at once while regions follow each other closely, from the kernel after a pause.
  std::uint32_t await_epoch(std::uint32_t seen) {
    const auto deadline = std::chrono::steady_clock::now() + kSpinBeforePark;
    do {
      for (std::uint32_t i = 0; i < kPausesPerLook; ++i) {
        if (const std::uint32_t now = epoch.load(std::memory_order_acquire); now != seen) return now;
        _mm_pause();
      }
    } while (std::chrono::steady_clock::now() < deadline);
    parked.fetch_add(1);
    epoch.wait(seen);
    parked.fetch_sub(1);
    return epoch.load(std::memory_order_acquire);
  }

  void bind(std::uint32_t worker) const {
    if (!cpus.empty()) bind_to_cpu(cpus[worker % cpus.size()]);
  }

  void worker_loop(std::uint32_t worker) {
    bind(worker);
    const FloatMode mode;
    std::uint32_t seen = 0;
    while (!stopping.load(std::memory_order_acquire)) {
      seen = await_epoch(seen);
      enter_and_work(worker);
    }
  }

  void announce() {
    epoch.fetch_add(1);
    if (parked.load() > 0) epoch.notify_all();
  }
};

ThreadPool::ThreadPool(std::uint32_t threads, std::vector<std::uint32_t> cpus) : state_(std::make_unique<State>()) {
  state_->cpus = std::move(cpus);
  for (std::uint32_t worker = 1; worker < threads; ++worker) {
    state_->workers.emplace_back([state = state_.get(), worker] { state->worker_loop(worker); });
  }
}

ThreadPool::~ThreadPool() {
  state_->stopping.store(true, std::memory_order_release);
  state_->epoch.fetch_add(1);
  state_->epoch.notify_all();
  for (std::thread& worker : state_->workers) worker.join();
}

std::uint32_t ThreadPool::size() const { return static_cast<std::uint32_t>(state_->workers.size()) + 1; }

void ThreadPool::bind_caller() const { state_->bind(0); }

void ThreadPool::run_erased(std::uint32_t tiles, Job job, const void* body) {
  State& s = *state_;
  if (tiles <= 1 || s.workers.empty()) {
    for (std::uint32_t tile = 0; tile < tiles; ++tile) job(body, tile, 0);
    return;
  }
  s.tiles = tiles;
  s.job = job;
  s.body = body;
  s.next_tile.store(0, std::memory_order_relaxed);
  s.gate.store(State::kOpen, std::memory_order_release);
  s.announce();
  s.take_tiles(0);
  s.gate.fetch_and(~State::kOpen, std::memory_order_acq_rel);
  while (s.gate.load(std::memory_order_acquire) != 0) _mm_pause();
}

}  // namespace octavo
