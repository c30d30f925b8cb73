#include "engine/resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/memory.h"
#include "base/topology.h"
#include "engine/check_config.h"
#include "engine/describe_tokenizer.h"
#include "engine/measure_steps.h"
#include "engine/memory_plan.h"
#include "engine/step_memo.h"
#include "load/open_checkpoint.h"

namespace octavo {
namespace {

constexpr std::uint32_t kMaxLogitRows = 64;
constexpr Micros kWaitPerToken = std::chrono::milliseconds(10);

Result<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{ErrorCode::kNotFound, path + ": cannot open the chat template", "chat_template"};
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Result<std::optional<ChatTemplate>> load_template(const EngineConfig& config, const ModelInfo& model) {
  std::optional<std::string> source = model.chat_template;
  if (!config.chat_template_file.empty()) {
    OCTAVO_TRY(source, read_text(config.chat_template_file));
  }
  if (!source) return std::optional<ChatTemplate>();
  auto parsed = ChatTemplate::parse(*source);
  if (parsed) return std::optional<ChatTemplate>(std::move(*parsed));
  Error error = std::move(parsed).error();
  error.message =
      (config.chat_template_file.empty() ? model.path + ": chat template: " : config.chat_template_file + ": ") +
      error.message;
  return error;
}

std::vector<KvLayerShape> kv_shapes(const ModelSpec& spec) {
  std::vector<KvLayerShape> shapes;
  for (const LayerSpec& layer : spec.layers) shapes.push_back({layer.num_kv_heads, layer.head_dim, layer.window});
  return shapes;
}

std::string fingerprint_of(const std::string& model, const EngineConfig& config) {
  return fmt::format("fp_{}_{}_kv-{}", model.substr(0, 12), numerics_name(config.numerics),
                     kv_type_name(config.kv_type));
}

/// Weights, step buffers and KV pool: what takes memory, in the order in which it is taken.
Result<> take_memory(const EngineConfig& config, const Checkpoint& checkpoint, const Progress& progress,
                     EngineResources& r) {
  EngineReport& report = r.report;
  OCTAVO_TRY(LoadedWeights loaded, load_weights(config, checkpoint, *r.pool, progress));
  r.weights = std::move(loaded.weights);
  r.pack_check = std::move(loaded.check);
  report.weights = std::move(loaded.report);
  report.packed_weights_bytes = report.step_weights_bytes = r.weights->bytes();
  if (const PackedMatrix& table = r.weights->embedding; table.panels != r.weights->head.panels) {
    report.step_weights_bytes -= table.num_panels() * table.panel_bytes;
  }
  report.fingerprint = fingerprint_of(loaded.source_sha256, config);

  const KvGroups groups = plan_groups(kv_shapes(r.spec), config.kv_type, config.block_tokens);
  ForwardLimits limits{budget_cap(config), kMaxLogitRows, config.max_model_len.value_or(r.spec.context_length)};
  report.activation_bytes = Model::activation_bytes(r.spec, *r.weights, limits, r.pool->size());
  // What is mapped counts as available, but is there to stay.
  const std::uint64_t mapped = report.weights.mapped ? r.weights->bytes() : 0;
  const std::uint64_t unclaimed = available_memory_bytes();
  const std::uint64_t available = unclaimed - std::min(unclaimed, mapped);
  if (report.activation_bytes >= available) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("step buffers of {} MiB do not fit in the {} MiB available: lower "
                             "--max-num-batched-tokens or --max-model-len",
                             report.activation_bytes >> 20, available >> 20),
                 "max_num_batched_tokens"};
  }
  if (config.kv_bytes.value_or(0) > available - report.activation_bytes) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("--kv-bytes asks for {} MiB, but {} MiB are available beside weights and step buffers",
                             *config.kv_bytes >> 20, (available - report.activation_bytes) >> 20),
                 "kv_bytes"};
  }
  OCTAVO_TRY(const KvBudget budget,
             plan_kv(config, groups, r.spec.context_length, available - report.activation_bytes));
  limits.max_positions = budget.max_model_len;
  report.activation_bytes = Model::activation_bytes(r.spec, *r.weights, limits, r.pool->size());
  r.store = std::make_unique<KvStore>(groups, budget.num_blocks);
  r.model = std::make_unique<Model>(r.spec, *r.weights, *r.kernels.kernels, *r.store, *r.pool, limits);

  report.kv_bytes = r.store->bytes();
  report.kv_bytes_per_token = groups.charged_bytes_per_token();
  report.num_blocks = budget.num_blocks - 1;
  report.num_groups = static_cast<std::uint32_t>(groups.groups.size());
  report.tokens_that_fit = std::uint64_t{report.num_blocks} * config.block_tokens / report.num_groups;
  report.max_model_len = budget.max_model_len;
  report.max_model_len_reason = budget.max_model_len_reason;
  const std::uint64_t left = available - std::min(available, report.activation_bytes + report.kv_bytes);
  const std::uint32_t slots = host_slots(config, groups, report.num_blocks, left);
  if (slots > 0) r.host = std::make_unique<KvHostStore>(*r.store, slots);
  report.swap_bytes = slots * groups.page_bytes;
  r.executor = std::make_unique<LocalExecutor>(*r.model, *r.store, r.host.get(), *r.sampling, *r.pool, limits,
                                               config.max_num_seqs);
  r.limits = limits;
  return Ok{};
}

std::vector<WindowShare> window_shares(const ModelSpec& spec) {
  std::vector<WindowShare> shares;
  for (const LayerSpec& layer : spec.layers) {
    const auto same = std::ranges::find(shares, layer.window, &WindowShare::window);
    WindowShare& share = same != shares.end() ? *same : shares.emplace_back(WindowShare{layer.window, 0});
    share.share += 1.0 / static_cast<double>(spec.layers.size());
  }
  return shares;
}

/// Times the model's steps (unless an earlier start did), settles the budget and makes the pacer that keeps to it.
void make_pacer(const EngineConfig& config, EngineResources& r) {
  const std::vector<WindowShare> windows = window_shares(r.spec);
  const std::string memo = step_memo_path(r.report);
  const std::optional<StepMeasurement> recalled = recall_steps(memo);
  r.measured = recalled ? *recalled
                        : measure_steps(*r.model, *r.store, r.report.num_blocks + 1, r.limits, StepTime({}, windows));
  if (r.measured.complete) r.step_memo = memo;
  if (!recalled) remember_steps(r.step_memo, r.measured);
  const StepTime time(r.measured.costs, windows);

  const std::optional<std::uint32_t> given = config.max_num_batched_tokens;
  const AutoBudget budget = auto_budget(time, given.value_or(config.max_num_seqs), given.value_or(budget_cap(config)));
  const char* why = given                                    ? "as given"
                    : budget.decode_steps > kMostDecodeSteps ? "for --max-num-seqs"
                    : recalled                               ? "measured at an earlier start"
                                                             : "measured";
  r.report.max_num_batched_tokens = budget.tokens;
  r.report.max_num_batched_tokens_reason =
      fmt::format("{}: a full step takes {:.1f} decode-only steps", why, budget.decode_steps);

  BudgetLimits limits;
  limits.max_tokens = budget.tokens;
  limits.max_per_prompt = config.long_prefill_token_threshold;
  limits.target_tpot = config.target_tpot;
  limits.target_ttft = config.target_ttft;
  r.pacer = std::make_unique<Pacer>(time, limits, config.max_num_seqs);
}

std::unique_ptr<Policy> make_policy(const EngineConfig& config) {
  switch (config.policy) {
    case PolicyKind::kPriority: return std::make_unique<Priority>(config.aging);
    case PolicyKind::kShortestRemaining: return std::make_unique<ShortestRemaining>(kWaitPerToken);
    case PolicyKind::kFcfs: break;
  }
  return std::make_unique<Fcfs>();
}

KvConfig kv_config(const EngineConfig& config, const EngineResources& r) {
  KvConfig kv;
  kv.block_tokens = config.block_tokens;
  kv.num_blocks = r.report.num_blocks + 1;
  for (const KvGroup& group : r.store->groups().groups) kv.groups.push_back({group.window});
  kv.max_seqs = config.max_num_seqs;
  kv.max_model_len = r.report.max_model_len;
  kv.max_step_tokens = r.report.max_num_batched_tokens;
  kv.memory = config.kv_memory;
  kv.prefix_caching = r.report.prefix_caching;
  kv.host_blocks = r.host ? r.host->num_slots() : 0;
  kv.events = !config.trace_file.empty();
  return kv;
}

SchedulerConfig scheduler_config(const EngineConfig& config, const EngineResources& r) {
  SchedulerConfig scheduler;
  scheduler.max_num_seqs = config.max_num_seqs;
  scheduler.max_num_batched_tokens = r.report.max_num_batched_tokens;
  scheduler.long_prefill_token_threshold = config.long_prefill_token_threshold;
  scheduler.max_model_len = r.report.max_model_len;
  scheduler.max_queued = config.max_queued;
  scheduler.watermark_blocks = static_cast<std::uint32_t>(config.watermark * r.report.num_blocks);
  scheduler.recompute_ns_per_token = static_cast<std::uint64_t>(r.measured.costs.token);
  scheduler.swap_ns_per_block = static_cast<std::uint64_t>(r.measured.copy_per_block.count());
  scheduler.batching = config.batching;
  scheduler.preemption = config.preemption;
  scheduler.discard_kv_after_sample = !config.kv_cache;
  scheduler.model_fingerprint = r.report.fingerprint;
  return scheduler;
}

}  // namespace

Result<std::unique_ptr<EngineResources>> build_resources(const EngineConfig& config, const Checkpoint& checkpoint,
                                                         std::vector<TokenId> end_of_generation,
                                                         const Progress& progress) {
  OCTAVO_CHECK_OK(check_config(config, checkpoint.spec().context_length));
  auto r = std::make_unique<EngineResources>();
  OCTAVO_TRY(r->kernels, select_kernels(environment("OCTAVO_ISA")));
  r->spec = checkpoint.spec();
  r->pool = std::make_unique<ThreadPool>(threads_or_cores(config.threads),
                                         config.pin_threads ? cpus_in_order() : std::vector<std::uint32_t>());

  EngineReport& report = r->report;
  report.isa = r->kernels.kernels->name;
  report.isa_not_used = r->kernels.not_used;
  report.threads = r->pool->size();
  report.kv_type = config.kv_type;
  report.block_tokens = config.block_tokens;
  report.max_num_seqs = config.max_num_seqs;
  report.kv_memory = config.kv_memory;
  report.prefix_caching = config.prefix_caching.value_or(config.kv_memory == KvMemory::kPaged && config.kv_cache);
  r->sampling = std::make_unique<SamplingTable>(*r->kernels.kernels, r->spec.vocab_size, std::move(end_of_generation),
                                                r->pool->size());
  OCTAVO_CHECK_OK(take_memory(config, checkpoint, progress, *r));
  make_pacer(config, *r);
  r->kv = std::make_unique<KvManager>(kv_config(config, *r));
  if (kGuarded) r->executor->poison_freed([kv = r->kv.get()] { return kv->nobodys(); });
  r->policy = make_policy(config);
  r->scheduler = std::make_unique<Scheduler>(scheduler_config(config, *r), *r->policy, *r->kv);
  return r;
}

Result<std::unique_ptr<EngineResources>> load_resources(const EngineConfig& config, const Progress& progress) {
  OCTAVO_TRY(const std::unique_ptr<Checkpoint> checkpoint, open_checkpoint(config.model));
  OCTAVO_TRY(ModelInfo info, read_model_info(config.model, config.kv_type));
  OCTAVO_TRY(std::optional<ChatTemplate> chat_template, load_template(config, info));
  std::unique_ptr<Tokenizer> tokenizer;
  std::vector<TokenId> ends;
  auto loaded = load_tokenizer(config.model);
  describe_tokenizer(loaded, info);
  if (loaded) {
    tokenizer = std::move(*loaded);
    ends.assign(tokenizer->end_of_generation().begin(), tokenizer->end_of_generation().end());
  } else if (!std::filesystem::is_directory(config.model)) {
    return std::move(loaded).error();  // a folder may go without: token ids in, token ids out
  }
  OCTAVO_TRY(std::unique_ptr<EngineResources> r, build_resources(config, *checkpoint, std::move(ends), progress));
  r->report.model = std::move(info);
  r->tokenizer = std::move(tokenizer);
  r->chat_template = std::move(chat_template);
  return r;
}

}  // namespace octavo
