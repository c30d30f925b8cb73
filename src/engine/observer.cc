#include "engine/observer.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace octavo {
namespace {

constexpr std::array<std::uint32_t, 11> kStepBuckets = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};

RequestMoment moment(RequestMoment::Kind kind, RequestId id, std::uint32_t choice, Micros at) {
  RequestMoment m;
  m.kind = kind, m.choice = choice, m.request = id, m.at_us = at.count();
  return m;
}

}  // namespace

Result<std::unique_ptr<TraceWriter>> open_trace(const EngineConfig& config, const EngineReport& report) {
  if (config.trace_file.empty()) return std::unique_ptr<TraceWriter>();
  const nlohmann::ordered_json head = {{"octavo_trace", 1},
                                       {"model", report.model.name},
                                       {"fingerprint", report.fingerprint},
                                       {"threads", report.threads},
                                       {"block_tokens", report.block_tokens},
                                       {"blocks", report.num_blocks},
                                       {"groups", report.num_groups},
                                       {"kv_bytes_per_token", report.kv_bytes_per_token},
                                       {"max_model_len", report.max_model_len},
                                       {"max_num_seqs", report.max_num_seqs},
                                       {"max_num_batched_tokens", report.max_num_batched_tokens}};
  return TraceWriter::open(config.trace_file, head.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                           report.block_tokens);
}

void Observer::arrived(RequestId id, const Request& request, Micros at) {
  if (trace_ == nullptr) return;
  RequestMoment m = moment(RequestMoment::Kind::kArrived, id, 0, at);
  m.prompt_tokens = static_cast<std::uint32_t>(request.prompt.size()), m.max_tokens = request.params.max_tokens;
  m.choices = request.params.n, m.priority = request.priority;
  trace_->request(m);
}

void Observer::scheduled(RequestId id, std::uint32_t choice, Micros at, std::uint32_t cached_tokens) {
  if (trace_ == nullptr) return;
  RequestMoment m = moment(RequestMoment::Kind::kScheduled, id, choice, at);
  m.cached_tokens = cached_tokens;
  trace_->request(m);
}

void Observer::token(RequestId id, std::uint32_t choice, Micros at, bool first) {
  ++counted_.generated_tokens;
  if (first && trace_ != nullptr) trace_->request(moment(RequestMoment::Kind::kFirstToken, id, choice, at));
}

void Observer::finished(RequestId id, std::uint32_t choice, Micros at, const Sequence& sequence) {
  switch (sequence.finish) {
    case Finish::kStop: ++counted_.finished_stop; break;
    case Finish::kLength: ++counted_.finished_length; break;
    case Finish::kAbort: ++counted_.finished_abort; break;
    case Finish::kDeadline: ++counted_.finished_deadline; break;
    case Finish::kNone:
    case Finish::kError: ++counted_.finished_error; break;
  }
  if (trace_ == nullptr) return;
  RequestMoment m = moment(RequestMoment::Kind::kFinished, id, choice, at);
  m.completion_tokens = sequence.outputs(), m.preemptions = sequence.preemptions, m.finish = sequence.finish;
  trace_->request(m);
}

void Observer::step(const StepPlan& plan, const StepResult& result, const StepFacts& facts,
                    std::span<const BatchRow> batch) {
  const StepRecord r = record_of(plan, result, facts);
  const auto bucket = std::lower_bound(kStepBuckets.begin(), kStepBuckets.end(), r.tokens);
  ++counted_.step_tokens[static_cast<std::size_t>(bucket - kStepBuckets.begin())];
  counted_.resumed += r.resumed, counted_.forked_tokens += r.forked_tokens;
  counted_.prefix_queries += r.lookup_tokens, counted_.prefix_hits += r.cached_tokens;
  counted_.recovered_tokens += r.recovered_tokens;
  log_.add(r, batch);
  if (trace_ != nullptr) trace_->step(r, batch);
}

}  // namespace octavo
