#include "engine/trace_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <utility>

namespace octavo {
namespace {

constexpr std::chrono::milliseconds kPoll{20};
constexpr std::size_t kTextBytes = 64 << 10;  // worded before it is written

using Bytes = std::span<const std::byte>;

template <class T>
Bytes bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

/// Takes values off the front of a message.
class MessageReader {
 public:
  explicit MessageReader(Bytes message) : rest_(message) {}

  template <class T>
  T take() {
    T value;
    std::memcpy(static_cast<void*>(&value), rest_.data(), sizeof(T));
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }
  [[nodiscard]] bool empty() const { return rest_.empty(); }

 private:
  Bytes rest_;
};

template <class... Values>
void add(std::string& out, fmt::format_string<Values...> format, Values&&... values) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Values>(values)...);
}

void add_hash(std::string& out, const BlockHash& hash) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += '"';
  for (const std::byte byte : hash) {
    out += kDigits[std::to_integer<unsigned>(byte) >> 4U];
    out += kDigits[std::to_integer<unsigned>(byte) & 15U];
  }
  out += '"';
}

void word_step(MessageReader in, std::string& out) {
  const auto r = in.take<StepRecord>();
  const char* before = "{";
  for_each_field(r, [&](const char* name, auto value) {
    add(out, R"({}"{}":{})", before, name, value);
    before = ",";
  });
  out += R"(,"batch":[)";
  for (bool first = true; !in.empty(); first = false) {
    const auto row = in.take<BatchRow>();
    add(out, "{}[{},{},{},{},{}]", first ? "" : ",", row.request.value, row.choice, row.first_position, row.tokens,
        row.prompt_tokens);
  }
  out += "]}\n";
}

void word_request(MessageReader in, std::string& out) {
  const auto m = in.take<RequestMoment>();
  add(out, R"({{"request":{},)", m.request.value);
  switch (m.kind) {
    case RequestMoment::Kind::kArrived:
      add(out, R"("event":"arrived","at_us":{},"prompt_tokens":{},"max_tokens":{},"choices":{},"priority":{})", m.at_us,
          m.prompt_tokens, m.max_tokens, m.choices, m.priority);
      break;
    case RequestMoment::Kind::kScheduled:
      add(out, R"("choice":{},"event":"scheduled","at_us":{},"cached_tokens":{})", m.choice, m.at_us, m.cached_tokens);
      break;
    case RequestMoment::Kind::kFirstToken:
      add(out, R"("choice":{},"event":"first_token","at_us":{})", m.choice, m.at_us);
      break;
    case RequestMoment::Kind::kFinished:
      add(out, R"("choice":{},"event":"finished","at_us":{},"reason":"{}","completion_tokens":{},"preemptions":{})",
          m.choice, m.at_us, finish_word(m.finish), m.completion_tokens, m.preemptions);
      break;
  }
  out += "}\n";
}

void word_kv(MessageReader in, std::uint32_t block_tokens, std::string& out) {
  const auto e = in.take<KvEvent>();
  const char* const kind = e.kind == KvEvent::Kind::kStored    ? "stored"
                           : e.kind == KvEvent::Kind::kRemoved ? "removed"
                                                               : "cleared";
  add(out, R"({{"kv":"{}","seq":{})", kind, e.number);
  if (e.kind != KvEvent::Kind::kCleared) {
    add(out, R"(,"group":{})", e.group.value);
    if (e.kind == KvEvent::Kind::kStored) {
      out += R"(,"parent":)";
      add_hash(out, e.parent);
    }
    out += R"(,"hashes":[)";
    for (std::uint32_t i = 0; i < e.num_blocks; ++i) {
      if (i > 0) out += ',';
      add_hash(out, in.take<BlockHash>());
    }
    out += ']';
    if (e.kind == KvEvent::Kind::kStored) {
      out += R"(,"tokens":[)";
      for (std::uint64_t i = 0; i < std::uint64_t{e.num_blocks} * block_tokens; ++i) {
        add(out, "{}{}", i > 0 ? "," : "", in.take<TokenId>().value);
      }
      out += ']';
    }
  }
  out += "}\n";
}

}  // namespace

const char* finish_word(Finish why) {
  switch (why) {
    case Finish::kStop: return "stop";
    case Finish::kLength: return "length";
    case Finish::kAbort: return "abort";
    case Finish::kDeadline: return "deadline";
    case Finish::kNone:
    case Finish::kError: break;
  }
  return "error";
}

Result<std::unique_ptr<TraceWriter>> TraceWriter::open(const std::string& path, std::string_view head,
                                                       std::uint32_t block_tokens, std::size_t queue_bytes) {
  // Non-blocking for pipes: who does not read them must not hold us up.
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0644);
  if (file < 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--trace {}: cannot write there: {}", path, std::strerror(errno)), "trace"};
  }
  return std::unique_ptr<TraceWriter>(new TraceWriter(path, file, head, block_tokens, queue_bytes));
}

TraceWriter::TraceWriter(std::string path, int file, std::string_view head, std::uint32_t block_tokens,
                         std::size_t queue_bytes)
    : path_(std::move(path)), file_(file), block_tokens_(block_tokens), queue_(queue_bytes) {
  text_.reserve(2 * kTextBytes);
  text_.append(head) += '\n';
  thread_ = std::thread([this] { write_all(); });
}

TraceWriter::~TraceWriter() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ends_.notify_all();
  thread_.join();
  ::close(file_);
  if (lost() == 0) return;
  fmt::print(stderr, "octavo: warning: {}: {} trace records are lost: {}\n", path_, lost(),
             error_ != 0 ? std::strerror(error_) : "the file was slower than the steps");
}

// The engine's thread ------------------------------------------------------------------------------------------------

void TraceWriter::step(const StepRecord& record, std::span<const BatchRow> batch) {
  push(Kind::kStep, std::array{bytes_of(record), std::as_bytes(batch)});
}

void TraceWriter::request(const RequestMoment& moment) { push(Kind::kRequest, std::array{bytes_of(moment)}); }

void TraceWriter::kv(const KvEvents& events) {
  for (const KvEvent& event : events.events) {
    const bool stored = event.kind == KvEvent::Kind::kStored;
    push(Kind::kKv, std::array{bytes_of(event), std::as_bytes(events.hashes_of(event)),
                               stored ? std::as_bytes(events.tokens_of(event, block_tokens_)) : Bytes()});
  }
}

void TraceWriter::push(Kind kind, std::span<const Bytes> parts) {
  const bool told = untold_ == 0 || offer(Kind::kLost, std::array{bytes_of(untold_)});
  if (told) untold_ = 0;
  if (told && offer(kind, parts)) return;
  ++untold_;
  lost_.fetch_add(1, std::memory_order_relaxed);
}

bool TraceWriter::offer(Kind kind, std::span<const Bytes> parts) {
  std::array<Bytes, 4> message{bytes_of(kind)};
  std::copy(parts.begin(), parts.end(), message.begin() + 1);
  return queue_.push(std::span(message).first(parts.size() + 1));
}

// The writer's thread ------------------------------------------------------------------------------------------------

void TraceWriter::write_all() {
  sigset_t deadly;  // a reader that leaves, a file as long as it may be: error codes, not deaths
  sigemptyset(&deadly);
  sigaddset(&deadly, SIGPIPE);
  sigaddset(&deadly, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &deadly, nullptr);
  std::unique_lock lock(mutex_);
  while (!ends_.wait_for(lock, kPoll, [this] { return ending_; })) {
    lock.unlock();
    drain();
    lock.lock();
  }
  drain();
  finish();
}

/// While nothing can be written the queue fills up, and the engine's thread counts what it cannot push.
void TraceWriter::drain() {
  while (text_.size() < kTextBytes || flush()) {
    if (!queue_.pop(message_)) break;
    word(message_);
  }
  (void)flush();
}

void TraceWriter::word(Bytes message) {
  MessageReader in(message);
  switch (in.take<Kind>()) {
    case Kind::kStep: return word_step(in, text_);
    case Kind::kRequest: return word_request(in, text_);
    case Kind::kKv: return word_kv(in, block_tokens_, text_);
    case Kind::kLost: return add(text_, "{{\"lost\":{}}}\n", in.take<std::uint64_t>());
  }
}

bool TraceWriter::flush() {
  while (written_ < text_.size()) {
    const ssize_t count = ::write(file_, text_.data() + written_, text_.size() - written_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      if (errno != EAGAIN && std::exchange(error_, errno) == 0) {
        fmt::print(stderr, "octavo: warning: {}: {}; the trace waits, steps go on\n", path_, std::strerror(error_));
      }
      return false;
    }
    written_ += static_cast<std::size_t>(count);
  }
  text_.clear();
  written_ = 0;
  return true;
}

/// What cannot be written now never will be.
void TraceWriter::finish() {
  if (!text_.empty()) {
    lost_ += static_cast<std::uint64_t>(
        std::count(text_.begin() + static_cast<std::ptrdiff_t>(written_), text_.end(), '\n'));
    while (queue_.pop(message_)) {
      if (MessageReader(message_).take<Kind>() != Kind::kLost) ++lost_;
    }
    return;
  }
  if (untold_ > 0) add(text_, "{{\"lost\":{}}}\n", untold_);
  add(text_, "{{\"end\":true,\"lost\":{}}}\n", lost());
  (void)flush();
}

}  // namespace octavo
