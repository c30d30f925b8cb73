// The trace file: steps, moments of requests and KV events as JSON lines (docs/trace.md).
//
// The engine's thread only copies values into a bounded queue; a thread of its own words and writes them. A full disk
// or a slow one costs records, never a step: they are counted, said in the file at the place where they are missing,
// and in a warning at the end.
// Threads: step(), request() and kv() by one thread; lost() by any.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/ids.h"
#include "engine/byte_queue.h"
#include "kv/kv_events.h"
#include "octavo/result.h"
#include "octavo/trace.h"
#include "sched/sequence.h"

namespace octavo {

/// A moment in the life of a request or of one of its choices.
struct RequestMoment {
  enum class Kind : std::uint32_t { kArrived, kScheduled, kFirstToken, kFinished };
  Kind kind = Kind::kArrived;
  std::uint32_t choice = 0;  // not of kArrived
  RequestId request;
  std::int64_t at_us = 0;
  std::uint32_t prompt_tokens = 0, max_tokens = 0, choices = 0;  // kArrived
  std::int32_t priority = 0;                                     // kArrived
  std::uint32_t cached_tokens = 0;                               // kScheduled
  std::uint32_t completion_tokens = 0, preemptions = 0;          // kFinished
  Finish finish = Finish::kNone;                                 // kFinished
};

class TraceWriter {
 public:
  static constexpr std::size_t kQueueBytes = std::size_t{8} << 20;

  /// Replaces `path`. `head`: the first line, a JSON object.
  [[nodiscard]] static Result<std::unique_ptr<TraceWriter>> open(const std::string& path, std::string_view head,
                                                                 std::uint32_t block_tokens,
                                                                 std::size_t queue_bytes = kQueueBytes);
  /// Writes what is left, then the last line.
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  void step(const StepRecord& record, std::span<const BatchRow> batch);
  void request(const RequestMoment& moment);
  void kv(const KvEvents& events);
  [[nodiscard]] std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  enum class Kind : std::uint32_t { kStep, kRequest, kKv, kLost };
  TraceWriter(std::string path, int file, std::string_view head, std::uint32_t block_tokens, std::size_t queue_bytes);

  void push(Kind kind, std::span<const std::span<const std::byte>> parts);
  [[nodiscard]] bool offer(Kind kind, std::span<const std::span<const std::byte>> parts);
  void write_all();
  void drain();
  void word(std::span<const std::byte> message);
  [[nodiscard]] bool flush();
  void finish();

  std::string path_;
  int file_;
  std::uint32_t block_tokens_;
  ByteQueue queue_;
  std::atomic<std::uint64_t> lost_{0};
  std::uint64_t untold_ = 0;  // lost since the last record that found room; the engine's thread

  // The writer's own.
  std::vector<std::byte> message_;
  std::string text_;  // whole lines, but for what was written of the first
  std::size_t written_ = 0;
  int error_ = 0;  // errno of the last write that failed

  std::mutex mutex_;
  std::condition_variable ends_;
  bool ending_ = false;
  std::thread thread_;  // last: it starts when all else is there
};

[[nodiscard]] const char* finish_word(Finish why);  // "stop", "length", "abort", "deadline", "error"

}  // namespace octavo
