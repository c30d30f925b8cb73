// Prometheus metrics under vLLM's names, so that existing boards, gateways and load generators work unchanged.
//
// What the engine counts is read from its stats at scrape time; what a client experiences is observed here, event by
// event. Threads: any.
#pragma once
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <string>
#include <vector>

#include "octavo/engine.h"
#include "octavo/request.h"

namespace octavo {

class Metrics {
 public:
  Metrics(std::string model_name, const EngineReport& report);

  /// A request that was admitted, with its parameters.
  void request(std::uint32_t prompt_tokens, const SamplingParams& params);
  /// One event of a choice; `previous_token` is the last_token of the event before, zero in the first.
  void event(const OutputEvent& event, std::chrono::microseconds previous_token);
  void answer(const std::string& handler, const std::string& method, unsigned status);

  /// The text format, version 0.0.4.
  [[nodiscard]] std::string text(const EngineStats& stats, const std::vector<MemoryUse>& memory) const;

 private:
  using Buckets = prometheus::Histogram::BucketBoundaries;
  prometheus::Histogram& histogram(const char* name, const char* help, const Buckets& buckets);

  prometheus::Labels labels_;
  std::uint32_t block_tokens_, num_blocks_;
  std::string cache_type_;
  prometheus::Registry registry_;
  prometheus::Histogram &first_token_, &inter_token_, &per_output_token_, &end_to_end_, &queue_, &prefill_, &decode_,
      &inference_, &prompt_length_, &prompt_computed_, &output_length_, &params_n_, &params_max_tokens_;
  prometheus::Family<prometheus::Counter>& http_requests_;
};

}  // namespace octavo
