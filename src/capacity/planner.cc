#include "octavo/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/binary_size.h"
#include "base/memory.h"
#include "base/topology.h"
#include "capacity/check_config.h"
#include "capacity/memory_plan.h"
#include "capacity/process_memory.h"
#include "kv/layout.h"
#include "model/activation_bytes.h"

namespace octavo {
namespace {

constexpr std::uint32_t kMostBatch = 4096;        // of --max-num-seqs
constexpr std::uint32_t kMostLength = 1U << 28U;  // of any model's context
constexpr double kMostKvBytes = 0x1p60;           // of the asked point
constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 60;

Error invalid(const char* field, std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message), field};
}

Result<> check_question(const ModelShape& model, const MemoryQuestion& question) {
  const EngineConfig& config = question.engine;
  if (question.memory && (*question.memory == 0 || *question.memory > kMostMemory)) {
    return invalid("memory", fmt::format("--memory {} must be between 1 byte and 1024 PiB", *question.memory));
  }
  if (config.kv_bytes == 0U) return invalid("kv_bytes", "--kv-bytes 0 must be more: a pool has at least one block");
  OCTAVO_CHECK_OK(check_config(config, model.context_length));
  if (question.batch && (*question.batch == 0 || *question.batch > kMostBatch)) {
    return invalid("batch", fmt::format("--batch {} must be between 1 and {}", *question.batch, kMostBatch));
  }
  if (question.batch.value_or(1) > config.max_num_seqs) {
    return invalid("batch", fmt::format("--batch {} is more than the {} sequences of --max-num-seqs", *question.batch,
                                        config.max_num_seqs));
  }
  if (question.length && (*question.length == 0 || *question.length > kMostLength)) {
    return invalid("length", fmt::format("--length {} must be between 1 and {}", *question.length, kMostLength));
  }
  if (question.length && config.max_model_len && *question.length > *config.max_model_len) {
    return invalid("length", fmt::format("--length {} is longer than --max-model-len {} allows", *question.length,
                                         *config.max_model_len));
  }
  return Ok{};
}

/// Layers of one kind, in the order of their first.
std::vector<KvLayersPlan> kv_layers(const ModelShape& model, const KvGroups& groups) {
  std::vector<KvLayersPlan> kinds;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const LayerShape& layer = model.layers[i];
    auto kind = std::ranges::find_if(kinds, [&](const KvLayersPlan& k) {
      return k.num_heads == layer.num_heads && k.num_kv_heads == layer.num_kv_heads && k.head_dim == layer.head_dim &&
             k.window == layer.window && k.latent_dim == layer.latent_dim;
    });
    if (kind == kinds.end()) {
      KvLayersPlan fresh;
      fresh.kind = layer.latent_dim != 0 ? "latent"
                   : layer.window == 0   ? "full"
                                         : fmt::format("window {}", layer.window);
      fresh.num_heads = layer.num_heads, fresh.num_kv_heads = layer.num_kv_heads, fresh.head_dim = layer.head_dim;
      fresh.window = layer.window, fresh.latent_dim = layer.latent_dim;
      kind = kinds.insert(kind, std::move(fresh));
    }
    ++kind->layers;
    kind->bytes_per_token += groups.layers[i].layout.payload_bytes_per_token;
  }
  return kinds;
}

/// One question on its way to a plan.
class Planning {
 public:
  Planning(const ModelShape& model, const MemoryQuestion& question)
      : model_(model),
        question_(question),
        config_(question.engine),
        groups_(plan_groups(kv_shapes(model), config_.kv_type, config_.block_tokens)),
        threads_(threads_or_cores(question.threads != 0 ? question.threads : config_.threads)) {}

  Result<MemoryPlan> run() {
    describe_kv();
    plan_.memory_bytes = question_.memory.value_or(available_memory_bytes());
    plan_.weights_bytes = model_.packed_weights_bytes;
    take_memory();
    OCTAVO_CHECK_OK(answer_point());
    note_limits();
    return std::move(plan_);
  }

 private:
  void describe_kv() {
    plan_.kv_layers = kv_layers(model_, groups_);
    plan_.bytes_per_token = groups_.payload_bytes_per_token;
    plan_.charged_bytes_per_token = groups_.charged_bytes_per_token();
    plan_.block_tokens = groups_.block_tokens;
    plan_.num_groups = static_cast<std::uint32_t>(groups_.groups.size());
    plan_.page_bytes = groups_.page_bytes;
  }

  [[nodiscard]] std::uint32_t most_tokens() const { return config_.max_model_len.value_or(model_.context_length); }

  /// All but the pool and its bookkeeping.
  [[nodiscard]] std::uint64_t fixed_bytes() const {
    std::uint64_t sum = plan_.weights_bytes + plan_.activations_bytes;
    for (const MemoryTag& tag : process_) sum += tag.bytes;
    return sum;
  }

  [[nodiscard]] std::uint64_t activations(std::uint32_t positions) const {
    return activation_bytes(model_, {budget_cap(config_), kMaxLogitRows, positions}, threads_);
  }

  /// In the order in which an engine takes it: first all that is fixed, then the pool, then what swaps.
  void take_memory() {
    const std::uint32_t wanted = most_tokens();
    plan_.activations_bytes = activations(wanted);
    process_ = process_memory(model_, config_, threads_);
    process_.push_back(page_tables(fixed_bytes()));
    const std::uint64_t fixed = fixed_bytes();
    free_ = plan_.memory_bytes - std::min(plan_.memory_bytes, fixed);
    // What the bookkeeping takes depends on the pool, and the pool on what is left.
    const std::uint64_t about = kv_space(config_, groups_, free_) / groups_.page_bytes;
    free_ -= std::min(free_, bookkeeping_bytes(config_, about) + about * groups_.page_bytes / 512);
    if (fixed + groups_.page_bytes >= plan_.memory_bytes) {
      plan_.why_not = fmt::format("weights of {}, step buffers of {} and {} for the process leave nothing of {} for KV",
                                  binary_size(plan_.weights_bytes), binary_size(plan_.activations_bytes),
                                  binary_size(fixed - plan_.weights_bytes - plan_.activations_bytes),
                                  binary_size(plan_.memory_bytes));
    } else if (config_.kv_bytes.value_or(0) > free_) {
      plan_.why_not = fmt::format("--kv-bytes asks for {}, but {} of {} are left beside weights and step buffers",
                                  binary_size(*config_.kv_bytes), binary_size(free_), binary_size(plan_.memory_bytes));
    } else if (auto budget = plan_kv(config_, groups_, model_.context_length, free_); budget) {
      plan_.num_blocks = budget->num_blocks - 1;
      plan_.longest_request = budget->max_model_len;
      plan_.longest_request_reason = budget->max_model_len_reason;
      plan_.pool_bytes = groups_.page_bytes * budget->num_blocks;
      plan_.activations_bytes = activations(budget->max_model_len);
    } else {
      plan_.why_not = budget.error().message;
    }
    list_tags();
  }

  void list_tags() {
    const auto add = [&](std::string tag, std::uint64_t bytes, std::string why) -> MemoryTag& {
      return plan_.tags.emplace_back(MemoryTag{std::move(tag), bytes, std::move(why), false, true});
    };
    add("weights", plan_.weights_bytes,
        model_.unsupported.empty() ? "packed in panels for the kernels"
                                   : "as the file has them, or their format makes them");
    add("activations", plan_.activations_bytes,
        fmt::format("step buffers for {} tokens, rope tables for {}", grouped(budget_cap(config_)),
                    grouped(plan_.num_blocks != 0 ? plan_.longest_request : most_tokens())));
    add("kv pool", plan_.pool_bytes,
        fmt::format("{} blocks of {} and the null block", grouped(plan_.num_blocks), binary_size(groups_.page_bytes)));
    add("kv bookkeeping", bookkeeping_bytes(config_, plan_.num_blocks),
        "names, owners and tokens of each block, block tables of each sequence");
    process_.pop_back();
    process_.push_back(page_tables(plan_.pool_bytes + fixed_bytes()));
    plan_.tags.insert(plan_.tags.end(), process_.begin(), process_.end());
    std::uint64_t taken = 0;
    for (const MemoryTag& tag : plan_.tags) taken += tag.bytes;
    const std::uint64_t left = plan_.memory_bytes - std::min(plan_.memory_bytes, taken);
    plan_.num_host_blocks = host_slots(config_, groups_, plan_.num_blocks, left);
    add("swap", std::uint64_t{plan_.num_host_blocks} * groups_.page_bytes, "host memory of preempted sequences")
        .when_needed = true;
    for (const MemoryTag& tag : plan_.tags) {
      plan_.total_bytes += tag.bytes;
      if (tag.in_rss && !tag.when_needed) plan_.rss_bytes += tag.bytes;
    }
  }

  /// What batch x length needs, and what fits of it.
  Result<> answer_point() {
    plan_.batch = question_.batch.value_or(1);
    const std::uint32_t most = most_tokens();
    plan_.length =
        question_.length.value_or(question_.batch || plan_.longest_request == 0 ? most : plan_.longest_request);
    for (const KvLayersPlan& kind : plan_.kv_layers) {
      const std::uint32_t kept = kind.window == 0 ? plan_.length : std::min(plan_.length, kind.window);
      const double bytes = static_cast<double>(kind.bytes_per_token) * kept * plan_.batch;
      if (bytes > kMostKvBytes) {
        return invalid("length", fmt::format("--batch {} of --length {} is more KV than any machine has: {:.0f} PiB",
                                             plan_.batch, plan_.length, bytes / 0x1p50));
      }
      plan_.kv_bytes += kind.bytes_per_token * kept * plan_.batch;
    }
    const std::uint64_t each = blocks_of(config_, groups_, plan_.length, config_.max_model_len.value_or(plan_.length));
    const std::uint64_t usable = plan_.num_blocks == 0 ? 0 : kv_space(config_, groups_, free_) / groups_.page_bytes;
    plan_.blocks_that_fit = usable;
    plan_.tokens_that_fit = usable * groups_.block_tokens / plan_.num_groups;
    plan_.kv_charged_bytes = each * plan_.batch * groups_.page_bytes;
    plan_.max_batch = usable / each;
    plan_.fits = plan_.why_not.empty() && plan_.batch <= plan_.max_batch;
    if (!plan_.fits) explain_misfit(usable, each);
    return Ok{};
  }

  void explain_misfit(std::uint64_t usable, std::uint64_t each) {
    if (plan_.why_not.empty()) {
      plan_.why_not = fmt::format("{} x {} tokens need {} of KV, {} of {} are left for it", plan_.batch,
                                  grouped(plan_.length), binary_size(plan_.kv_charged_bytes),
                                  binary_size(usable * groups_.page_bytes), binary_size(plan_.memory_bytes));
    }
    std::vector<std::string> ways;
    const bool asked = question_.batch || question_.length;
    if (asked && plan_.max_batch > 0) ways.push_back(fmt::format("--batch {}", plan_.max_batch));
    const std::uint32_t length = longest_in(config_, groups_, usable / plan_.batch, plan_.length);
    if (length > 0 && length < plan_.length) {
      ways.push_back(fmt::format("{} {}", asked ? "--length" : "--max-model-len", length));
    }
    if (config_.kv_bytes && each * plan_.batch * groups_.page_bytes <= free_) {
      ways.push_back(fmt::format("--kv-bytes {}", each * plan_.batch * groups_.page_bytes));
    }
    if (usable == 0 && !config_.kv_bytes) add_smaller_buffers(ways);
    const double kv = static_cast<double>((each * plan_.batch + 1) * groups_.page_bytes);
    const double share = config_.kv_bytes ? 1 : config_.kv_fraction;
    const double need =
        static_cast<double>(fixed_bytes() + bookkeeping_bytes(config_, each * plan_.batch)) + kv / share;
    ways.push_back(fmt::format("{} of memory", binary_size(static_cast<std::uint64_t>(need / 0x1p20 + 1) << 20U)));
    plan_.nearest = fmt::format("{}", fmt::join(ways, ", or "));
  }

  /// Where all that is fixed leaves nothing: the least step buffers may.
  void add_smaller_buffers(std::vector<std::string>& ways) const {
    constexpr std::uint32_t kShort = 2048;
    MemoryQuestion smaller = question_;
    smaller.batch.reset(), smaller.length.reset();
    smaller.memory = plan_.memory_bytes;
    smaller.engine.max_num_batched_tokens = std::max(smaller.engine.max_num_seqs, 64U);
    smaller.engine.max_model_len = std::min(kShort, smaller.engine.max_model_len.value_or(model_.context_length));
    if (smaller.engine.max_num_batched_tokens >= budget_cap(config_)) return;
    const auto plan = plan_memory(model_, smaller);
    if (!plan || !plan->fits) return;
    ways.push_back(fmt::format("--max-num-batched-tokens {} --max-model-len {}", *smaller.engine.max_num_batched_tokens,
                               *smaller.engine.max_model_len));
  }

  void note_limits() {
    if (!model_.unsupported.empty()) {
      plan_.notes.push_back("Octavo cannot run this model (" + model_.unsupported + "): its memory alone is told");
    }
    if (model_.weights_bytes == 0) {
      plan_.notes.emplace_back("the weights are not counted: a config of this kind does not say how large they are");
    } else if (!model_.weights_format.empty()) {
      plan_.notes.push_back("all matrices are taken for " + model_.weights_format + " (--weights-format)");
    }
    if (plan_.length > model_.context_length) {
      plan_.notes.push_back(
          fmt::format("{} tokens are beyond the model's context of {}: counted, though it cannot run so",
                      grouped(plan_.length), grouped(model_.context_length)));
    }
    if (plan_.max_batch > config_.max_num_seqs) {
      plan_.notes.push_back(fmt::format("at most {} sequences run at once: --max-num-seqs", config_.max_num_seqs));
    }
  }

  const ModelShape& model_;
  const MemoryQuestion& question_;
  const EngineConfig& config_;
  KvGroups groups_;
  std::uint32_t threads_;
  std::vector<MemoryTag> process_;
  std::uint64_t free_ = 0;  // for the pool
  MemoryPlan plan_;
};

}  // namespace

Result<MemoryPlan> plan_memory(const ModelShape& model, const MemoryQuestion& question) {
  OCTAVO_CHECK_OK(check_question(model, question));
  return Planning(model, question).run();
}

}  // namespace octavo
