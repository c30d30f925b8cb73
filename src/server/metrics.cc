#include "server/metrics.h"

#include <fmt/format.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <limits>

namespace octavo {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

const std::vector<double> kFirstTokenSeconds{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5,  .75,
                                             1,    2.5,  5,   7.5, 10,  20,  40,  80, 160, 640, 2560};
const std::vector<double> kTokenSeconds{.01, .025, .05, .075, .1,  .15, .2, .3, .4, .5,
                                        .75, 1,    2.5, 5,    7.5, 10,  20, 40, 80};
const std::vector<double> kRequestSeconds{.3, .5, .8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                          30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};
const std::vector<double> kParamsN{1, 2, 5, 10, 20};
constexpr std::array<double, 12> kStepTokens{1,   8,   16,   32,   64,   128,
                                             256, 512, 1024, 2048, 4096, std::numeric_limits<double>::infinity()};

/// 1, 2, 5, 10, 20, 50, ... up to `most`.
std::vector<double> lengths_up_to(std::uint32_t most) {
  std::vector<double> out;
  for (double decade = 1;; decade *= 10) {
    for (const double step : {1.0, 2.0, 5.0}) {
      if (decade * step > most) return out;
      out.push_back(decade * step);
    }
  }
}

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

double seconds(std::chrono::microseconds time) { return std::chrono::duration<double>(time).count(); }

std::vector<ClientMetric::Label> label_list(const prometheus::Labels& labels) {
  std::vector<ClientMetric::Label> out;
  for (const auto& [name, value] : labels) out.push_back({name, value});
  return out;
}

/// Metrics made of the engine's stats.
class StatsFamilies {
 public:
  explicit StatsFamilies(const prometheus::Labels& labels) : labels_(label_list(labels)) {}

  void gauge(const char* name, const char* help, double value, std::vector<ClientMetric::Label> more = {}) {
    ClientMetric metric;
    metric.label = labels_;
    metric.label.insert(metric.label.end(), more.begin(), more.end());
    metric.gauge.value = value;
    family(name, help, MetricType::Gauge).metric.push_back(std::move(metric));
  }

  void counter(const char* name, const char* help, std::uint64_t value, std::vector<ClientMetric::Label> more = {}) {
    ClientMetric metric;
    metric.label = labels_;
    metric.label.insert(metric.label.end(), more.begin(), more.end());
    metric.counter.value = static_cast<double>(value);
    family(name, help, MetricType::Counter).metric.push_back(std::move(metric));
  }

  void step_tokens(const EngineStats& stats) {
    ClientMetric metric;
    metric.label = labels_;
    for (std::size_t i = 0; i < kStepTokens.size(); ++i) {
      metric.histogram.sample_count += stats.step_tokens[i];
      metric.histogram.bucket.push_back({metric.histogram.sample_count, kStepTokens[i]});
    }
    metric.histogram.sample_sum = static_cast<double>(stats.computed_tokens);
    family("vllm:iteration_tokens_total", "Tokens per engine step", MetricType::Histogram)
        .metric.push_back(std::move(metric));
  }

  std::vector<MetricFamily> families;

 private:
  MetricFamily& family(const char* name, const char* help, MetricType type) {
    if (families.empty() || families.back().name != name) families.push_back({name, help, type, {}});
    return families.back();
  }
  std::vector<ClientMetric::Label> labels_;
};

}  // namespace

Metrics::Metrics(std::string model_name, const EngineReport& report)
    : labels_{{"model_name", std::move(model_name)}, {"engine", "0"}},
      block_tokens_(report.block_tokens),
      num_blocks_(report.num_blocks),
      cache_type_(kv_type_name(report.kv_type)),
      first_token_(
          histogram("vllm:time_to_first_token_seconds", "From arrival to the first token", kFirstTokenSeconds)),
      inter_token_(histogram("vllm:inter_token_latency_seconds", "Between two tokens of a sequence", kTokenSeconds)),
      per_output_token_(histogram("vllm:request_time_per_output_token_seconds",
                                  "Mean time per token after the first, per sequence", kTokenSeconds)),
      end_to_end_(histogram("vllm:e2e_request_latency_seconds", "From arrival to the last token", kRequestSeconds)),
      queue_(histogram("vllm:request_queue_time_seconds", "From arrival to the first step", kRequestSeconds)),
      prefill_(
          histogram("vllm:request_prefill_time_seconds", "From the first step to the first token", kRequestSeconds)),
      decode_(histogram("vllm:request_decode_time_seconds", "From the first token to the last", kRequestSeconds)),
      inference_(
          histogram("vllm:request_inference_time_seconds", "From the first step to the last token", kRequestSeconds)),
      prompt_length_(
          histogram("vllm:request_prompt_tokens", "Prompt tokens per request", lengths_up_to(report.max_model_len))),
      prompt_computed_(histogram("vllm:request_prefill_kv_computed_tokens",
                                 "Prompt tokens per sequence that no cache had", lengths_up_to(report.max_model_len))),
      output_length_(histogram("vllm:request_generation_tokens", "Generated tokens per sequence",
                               lengths_up_to(report.max_model_len))),
      params_n_(histogram("vllm:request_params_n", "The n of requests", kParamsN)),
      params_max_tokens_(histogram("vllm:request_params_max_tokens", "The max_tokens of requests",
                                   lengths_up_to(report.max_model_len))),
      http_requests_(prometheus::BuildCounter()
                         .Name("http_requests_total")
                         .Help("HTTP answers by route, method and class of status")
                         .Register(registry_)) {}

prometheus::Histogram& Metrics::histogram(const char* name, const char* help, const Buckets& buckets) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry_).Add(labels_, buckets);
}

void Metrics::request(std::uint32_t prompt_tokens, const SamplingParams& params) {
  prompt_length_.Observe(prompt_tokens);
  params_n_.Observe(params.n);
  params_max_tokens_.Observe(params.max_tokens);
}

void Metrics::event(const OutputEvent& event, std::chrono::microseconds previous_token) {
  const Timings& at = event.timings;
  const auto never = std::chrono::microseconds{};
  if (!event.tokens.empty() && at.first_token != never) {
    if (previous_token == never)
      first_token_.Observe(seconds(at.first_token - at.arrival));
    else
      inter_token_.Observe(seconds(at.last_token - previous_token) / static_cast<double>(event.tokens.size()));
  }
  const bool completed = event.finish == FinishReason::kStop || event.finish == FinishReason::kLength;
  if (!completed) return;
  output_length_.Observe(event.usage.completion_tokens);
  prompt_computed_.Observe(event.usage.prompt_tokens - event.usage.cached_tokens);
  queue_.Observe(seconds(at.scheduled - at.arrival));
  if (at.first_token == never) return;  // scored only
  prefill_.Observe(seconds(at.first_token - at.scheduled));
  decode_.Observe(seconds(at.last_token - at.first_token));
  inference_.Observe(seconds(at.last_token - at.scheduled));
  end_to_end_.Observe(seconds(at.last_token - at.arrival));
  if (event.usage.completion_tokens > 1) {
    per_output_token_.Observe(seconds(at.last_token - at.first_token) / (event.usage.completion_tokens - 1));
  }
}

void Metrics::answer(const std::string& handler, const std::string& method, unsigned status) {
  http_requests_.Add({{"handler", handler}, {"method", method}, {"status", fmt::format("{}xx", status / 100)}})
      .Increment();
}

std::string Metrics::text(const EngineStats& stats, const std::vector<MemoryUse>& memory) const {
  StatsFamilies out(labels_);
  const double used = share(stats.blocks_used, stats.blocks_total);
  out.gauge("vllm:num_requests_running", "Sequences being computed", stats.running);
  out.gauge("vllm:num_requests_waiting", "Sequences in the queue", stats.waiting);
  out.gauge("vllm:num_requests_waiting_by_reason", "Sequences in the queue, by what they wait for", stats.waiting,
            {{"reason", "capacity"}});
  out.gauge("vllm:kv_cache_usage_perc", "Share of the KV blocks in use, 0 to 1", used);
  out.gauge("vllm:gpu_cache_usage_perc", "Older name of vllm:kv_cache_usage_perc", used);
  out.gauge("vllm:kv_offload_cpu_cache_usage_perc", "Share of the host slots in use, 0 to 1",
            share(stats.host_slots_used, stats.host_slots_total));
  const char* const blocks = "KV blocks, by state; cached ones are free, too";
  out.gauge("octavo:kv_blocks", blocks, stats.blocks_used, {{"state", "used"}});
  out.gauge("octavo:kv_blocks", blocks, stats.blocks_total - stats.blocks_used, {{"state", "free"}});
  out.gauge("octavo:kv_blocks", blocks, stats.blocks_cached, {{"state", "cached"}});
  const char* const bytes = "KV bytes: owned by sequences, holding a live token, owned but empty, free but in holes";
  out.gauge("octavo:kv_bytes", bytes, static_cast<double>(stats.kv_reserved_bytes), {{"kind", "reserved"}});
  out.gauge("octavo:kv_bytes", bytes, static_cast<double>(stats.kv_used_bytes), {{"kind", "used"}});
  out.gauge("octavo:kv_bytes", bytes, static_cast<double>(stats.kv_reserved_bytes - stats.kv_used_bytes),
            {{"kind", "internal_waste"}});
  out.gauge("octavo:kv_bytes", bytes, static_cast<double>(stats.kv_external_waste_bytes), {{"kind", "external_waste"}});
  out.gauge("vllm:cache_config_info", "The KV cache's layout", 1,
            {{"block_size", std::to_string(block_tokens_)},
             {"num_gpu_blocks", std::to_string(num_blocks_)},
             {"cache_dtype", cache_type_}});
  out.counter("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache", stats.prefix_queries);
  out.counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache", stats.prefix_hits);
  out.counter("vllm:gpu_prefix_cache_queries_total", "Older name of vllm:prefix_cache_queries_total",
              stats.prefix_queries);
  out.counter("vllm:gpu_prefix_cache_hits_total", "Older name of vllm:prefix_cache_hits_total", stats.prefix_hits);
  out.gauge("vllm:gpu_prefix_cache_hit_rate", "Hits by queries since the start, 0 to 1",
            share(stats.prefix_hits, stats.prefix_queries));
  out.counter("octavo:kv_block_copies_total", "Blocks copied: shared ones on a write, and runs that moved",
              stats.kv_copies);
  out.counter("octavo:kv_moved_runs_total", "Runs of dynamic memory that moved", stats.kv_moves);
  out.counter("vllm:num_preemptions_total", "Sequences put back because blocks ran out", stats.preemptions);
  const char* const preempted = "The same, by what became of their KV";
  out.counter("octavo:preemptions_total", preempted, stats.preemptions_recompute, {{"kind", "recompute"}});
  out.counter("octavo:preemptions_total", preempted, stats.preemptions_swap, {{"kind", "swap"}});
  out.counter("vllm:prompt_tokens_total", "Prompt tokens processed", stats.prompt_tokens);
  out.counter("vllm:prompt_tokens_cached_total", "Prompt tokens taken from the prefix cache", stats.prefix_hits);
  const char* const source = "Prompt tokens, by where their KV came from";
  out.counter("vllm:prompt_tokens_by_source_total", source, stats.prompt_tokens, {{"source", "local_compute"}});
  out.counter("vllm:prompt_tokens_by_source_total", source, stats.prefix_hits, {{"source", "local_cache_hit"}});
  out.counter("vllm:generation_tokens_total", "Tokens generated", stats.generated_tokens);
  const char* const finished = "Sequences ended, by reason";
  out.counter("vllm:request_success_total", finished, stats.finished_stop, {{"finished_reason", "stop"}});
  out.counter("vllm:request_success_total", finished, stats.finished_length, {{"finished_reason", "length"}});
  out.counter("vllm:request_success_total", finished, stats.finished_abort, {{"finished_reason", "abort"}});
  out.counter("vllm:request_success_total", finished, stats.finished_deadline, {{"finished_reason", "deadline"}});
  out.counter("vllm:request_success_total", finished, stats.finished_error, {{"finished_reason", "error"}});
  out.counter("octavo:trace_lost_total", "Records that the trace file could not take", stats.trace_lost);
  out.step_tokens(stats);
  const char* const planned = "Memory as planned at the start, by purpose";
  for (const MemoryUse& use : memory) {
    out.gauge("octavo:memory_planned_bytes", planned, static_cast<double>(use.planned), {{"tag", use.tag}});
  }
  const char* const actual = "Memory that is resident now, by purpose";
  for (const MemoryUse& use : memory) {
    out.gauge("octavo:memory_actual_bytes", actual, static_cast<double>(use.actual), {{"tag", use.tag}});
  }
  const auto observed = registry_.Collect();
  out.families.insert(out.families.end(), observed.begin(), observed.end());
  return prometheus::TextSerializer().Serialize(out.families);
}

}  // namespace octavo
