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
#include "base/resident.h"
#include "base/topology.h"
#include "capacity/memory_plan.h"
#include "engine/checkpoint_shape.h"
#include "engine/describe_tokenizer.h"
#include "engine/measure_steps.h"
#include "engine/step_memo.h"
#include "load/open_checkpoint.h"
#include "octavo/planner.h"
#include "sched/serving_setup.h"

namespace octavo {
namespace {

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

std::string fingerprint_of(const std::string& model, const EngineConfig& config) {
  return fmt::format("fp_{}_{}_kv-{}", model.substr(0, 12), numerics_name(config.numerics),
                     kv_type_name(config.kv_type));
}

std::uint64_t grown(std::uint64_t before, std::uint64_t after) { return after - std::min(after, before); }

/// What the planner says of this configuration; an error where it does not fit.
Result<MemoryPlan> plan_for(const EngineConfig& config, const ModelShape& shape, std::uint32_t threads) {
  OCTAVO_TRY(MemoryPlan plan, plan_memory(shape, {.engine = config, .threads = threads}));
  if (plan.fits) return plan;
  const bool asked = config.kv_bytes || config.max_model_len;
  return Error{asked ? ErrorCode::kInvalidArgument : ErrorCode::kExhausted,
               fmt::format("{}: {}; what would fit: {}", shape.source, plan.why_not, plan.nearest),
               config.kv_bytes ? "kv_bytes" : ""};
}

/// Weights, step buffers and KV pool, as planned.
Result<> take_memory(const EngineConfig& config, const Checkpoint& checkpoint, const Progress& progress,
                     EngineResources& r) {
  EngineReport& report = r.report;
  const ModelShape shape = shape_of(checkpoint, config.numerics);
  OCTAVO_TRY(report.memory, plan_for(config, shape, r.pool->size()));
  const MemoryPlan& plan = report.memory;
  OCTAVO_TRY(LoadedWeights loaded, load_weights(config, checkpoint, *r.pool, progress));
  r.weights = std::move(loaded.weights);
  r.pack_check = std::move(loaded.check);
  report.weights = std::move(loaded.report);
  report.packed_weights_bytes = report.step_weights_bytes = r.weights->bytes();
  if (const PackedMatrix& table = r.weights->embedding; table.panels != r.weights->head.panels) {
    report.step_weights_bytes -= table.num_panels() * table.panel_bytes;
  }
  report.fingerprint = fingerprint_of(loaded.source_sha256, config);

  const KvGroups groups = plan_groups(kv_shapes(shape), config.kv_type, config.block_tokens);
  const ForwardLimits limits{budget_cap(config), kMaxLogitRows, plan.longest_request};
  r.store = std::make_unique<KvStore>(groups, plan.num_blocks + 1);
  r.model = std::make_unique<Model>(r.spec, *r.weights, *r.kernels.kernels, *r.store, *r.pool, limits);
  if (plan.num_host_blocks > 0) r.host = std::make_unique<KvHostStore>(*r.store, plan.num_host_blocks);
  r.executor = std::make_unique<LocalExecutor>(*r.model, *r.store, r.host.get(), *r.sampling, *r.pool, limits,
                                               config.max_num_seqs);
  r.limits = limits;

  report.activation_bytes = plan.activations_bytes;
  report.kv_bytes = plan.pool_bytes;
  report.kv_bytes_per_token = plan.charged_bytes_per_token;
  report.num_blocks = plan.num_blocks;
  report.num_groups = plan.num_groups;
  report.tokens_that_fit = std::uint64_t{plan.num_blocks} * plan.block_tokens / plan.num_groups;
  report.max_model_len = plan.longest_request;
  report.max_model_len_reason = plan.longest_request_reason;
  report.swap_bytes = plan.num_host_blocks * plan.page_bytes;
  return Ok{};
}

std::vector<WindowShare> windows_of(const ModelSpec& spec) {
  std::vector<std::uint32_t> windows;
  for (const LayerSpec& layer : spec.layers) windows.push_back(layer.window);
  return window_shares(windows);
}

/// Times the model's steps (unless an earlier start did) and settles the largest budget.
StepTime time_steps(const EngineConfig& config, EngineResources& r) {
  const std::vector<WindowShare> windows = windows_of(r.spec);
  const std::string memo = step_memo_path(r.report);
  const std::optional<StepMeasurement> recalled = recall_steps(memo);
  r.measured = recalled ? *recalled
                        : measure_steps(*r.model, *r.store, r.report.num_blocks + 1, r.limits, StepTime({}, windows));
  if (r.measured.complete) r.step_memo = memo;
  if (!recalled) remember_steps(r.step_memo, r.measured);
  const StepTime time(r.measured.costs, windows);

  const AutoBudget budget = settle_budget(config, time, budget_cap(config));
  const char* why = config.max_num_batched_tokens            ? "as given"
                    : budget.decode_steps > kMostDecodeSteps ? "for --max-num-seqs"
                    : recalled                               ? "measured at an earlier start"
                                                             : "measured";
  r.report.max_num_batched_tokens = budget.tokens;
  r.report.max_num_batched_tokens_reason =
      fmt::format("{}: a full step takes {:.1f} decode-only steps", why, budget.decode_steps);
  return time;
}

ServingFacts serving_facts(const EngineResources& r) {
  ServingFacts facts;
  for (const KvGroup& group : r.store->groups().groups) facts.groups.push_back({group.window});
  facts.num_blocks = r.report.num_blocks;
  facts.host_blocks = r.host ? r.host->num_slots() : 0;
  facts.max_model_len = r.report.max_model_len;
  facts.max_num_batched_tokens = r.report.max_num_batched_tokens;
  facts.fingerprint = r.report.fingerprint;
  facts.costs = r.measured.costs;
  facts.copy_per_block = r.measured.copy_per_block;
  return facts;
}

}  // namespace

Result<std::unique_ptr<EngineResources>> build_resources(const EngineConfig& config, const Checkpoint& checkpoint,
                                                         std::vector<TokenId> end_of_generation,
                                                         const Progress& progress) {
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
  report.prefix_caching = prefix_caching_on(config);
  const std::uint64_t before_sampling = heap_bytes();
  r->sampling = std::make_unique<SamplingTable>(*r->kernels.kernels, r->spec.vocab_size, std::move(end_of_generation),
                                                r->pool->size());
  r->heap.sampling = grown(before_sampling, heap_bytes());
  OCTAVO_CHECK_OK(take_memory(config, checkpoint, progress, *r));
  const StepTime time = time_steps(config, *r);
  const ServingFacts facts = serving_facts(*r);
  r->pacer = std::make_unique<Pacer>(time, budget_limits(config, facts), config.max_num_seqs);
  const std::uint64_t before_books = resident_anonymous_bytes();  // of its tables only what is used
  r->kv = std::make_unique<KvManager>(kv_config(config, facts));
  r->heap.bookkeeping = grown(before_books, resident_anonymous_bytes());
  if (kGuarded) r->executor->poison_freed([kv = r->kv.get()] { return kv->nobodys(); });
  r->policy = make_policy(config);
  r->scheduler = std::make_unique<Scheduler>(scheduler_config(config, facts), *r->policy, *r->kv);
  return r;
}

Result<std::unique_ptr<EngineResources>> load_resources(const EngineConfig& config, const Progress& progress) {
  OCTAVO_TRY(const std::unique_ptr<Checkpoint> checkpoint, open_checkpoint(config.model));
  OCTAVO_TRY(ModelInfo info, read_model_info(config.model, config.kv_type));
  OCTAVO_TRY(std::optional<ChatTemplate> chat_template, load_template(config, info));
  std::unique_ptr<Tokenizer> tokenizer;
  std::vector<TokenId> ends;
  const std::uint64_t before_tokenizer = heap_bytes();
  auto loaded = load_tokenizer(config.model);
  const std::uint64_t of_tokenizer = grown(before_tokenizer, heap_bytes());
  describe_tokenizer(loaded, info);
  if (loaded) {
    tokenizer = std::move(*loaded);
    ends.assign(tokenizer->end_of_generation().begin(), tokenizer->end_of_generation().end());
  } else if (!std::filesystem::is_directory(config.model)) {
    return std::move(loaded).error();  // a folder may go without: token ids in, token ids out
  }
  OCTAVO_TRY(std::unique_ptr<EngineResources> r, build_resources(config, *checkpoint, std::move(ends), progress));
  r->report.model = std::move(info);
  r->heap.tokenizer = of_tokenizer;
  r->tokenizer = std::move(tokenizer);
  r->chat_template = std::move(chat_template);
  return r;
}

}  // namespace octavo
