#include "kv/kv_host_store.h"

#include <xxhash.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/check.h"

namespace octavo {

/// The thread that loads.
class KvHostStore::Mover {
 public:
  explicit Mover(KvHostStore& host) : host_(host), thread_([this] { loop(); }) {}
  ~Mover() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  void start(std::span<const BlockMove> moves) {
    {
      const std::lock_guard lock(mutex_);
      moves_ = moves, busy_ = true;
    }
    wake_.notify_one();
  }

  void finish(std::vector<SeqId>& failed) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return !busy_; });
    failed.insert(failed.end(), failed_.begin(), failed_.end());
    failed_.clear();
  }

 private:
  void loop() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return busy_ || stop_; });
      if (stop_) return;
      lock.unlock();
      for (const BlockMove& move : moves_) load(move);
      lock.lock();
      busy_ = false;
      done_.notify_one();
    }
  }

  void load(const BlockMove& move) {
    const std::span<std::byte> page = host_.page(move.slot);
    if (XXH3_64bits(page.data(), page.size()) == host_.checksums_[move.slot.value]) {
      host_.device_.write_page(move.block, page);
    } else {
      failed_.push_back(move.seq);
    }
  }

  KvHostStore& host_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::span<const BlockMove> moves_;
  std::vector<SeqId> failed_;
  bool busy_ = false, stop_ = false;
  std::thread thread_;  // last: it starts when all else is there
};

KvHostStore::KvHostStore(KvStore& device, std::uint32_t num_slots)
    : device_(device),
      num_slots_(num_slots),
      memory_(device.groups().page_bytes * num_slots),
      checksums_(std::size_t{num_slots} + 1),
      mover_(std::make_unique<Mover>(*this)) {}
KvHostStore::~KvHostStore() = default;

std::span<std::byte> KvHostStore::page(HostSlot slot) const {
  OCTAVO_CHECK(slot.value >= 1 && slot.value <= num_slots_, "slots are 1 ... num_slots");
  const std::uint64_t bytes = device_.groups().page_bytes;
  return {memory_.data() + (slot.value - 1) * bytes, bytes};
}

void KvHostStore::save(std::span<const BlockMove> moves, ThreadPool& pool) {
  pool.run(static_cast<std::uint32_t>(moves.size()), [&](std::uint32_t i, std::uint32_t) {
    const std::span<std::byte> to = page(moves[i].slot);
    device_.read_page(moves[i].block, to);
    checksums_[moves[i].slot.value] = XXH3_64bits(to.data(), to.size());
  });
}

void KvHostStore::start_loads(std::span<const BlockMove> moves) { mover_->start(moves); }
void KvHostStore::finish_loads(std::vector<SeqId>& failed) { mover_->finish(failed); }

}  // namespace octavo
