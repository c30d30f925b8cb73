// Law 1 as a test: the bits of a request's logits depend on the model, its own tokens and the numerics options alone.
// Every way of running is compared to one reference run by a hash of each full row of logits; counters prove that the
// way was really taken.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "invariance/small_model.h"
#include "kernels/select.h"
#include "load/open_checkpoint.h"
#include "support/data_paths.h"
#include "support/step_runner.h"

namespace octavo::testing {
namespace {

constexpr std::size_t kRequests = 16;
constexpr std::size_t kLongPrompt = 560;  // past Gemma's window of 512 and two attention splits of 256

/// The first layers of a checkpoint: enough for the scalar kernels to run a real model in seconds.
class FirstLayers final : public Checkpoint {
 public:
  FirstLayers(const Checkpoint& whole, std::size_t layers) : whole_(whole), spec_(whole.spec()) {
    spec_.layers.resize(std::min(layers, spec_.layers.size()));
  }
  const ModelSpec& spec() const override { return spec_; }
  const ModelInfo& info() const override { return whole_.info(); }
  std::optional<TensorShape> shape(Role role, std::uint32_t layer) const override { return whole_.shape(role, layer); }
  std::optional<SourceTensor> tensor(Role role, std::uint32_t layer) const override {
    return whole_.tensor(role, layer);
  }
  std::span<const FileMap* const> files() const override { return whole_.files(); }
  std::string source_key() const override { return whole_.source_key(); }

 private:
  const Checkpoint& whole_;
  ModelSpec spec_;
};

/// Sixteen requests of all kinds: one token, block borders, window and split borders, greedy and sampled, two choices,
/// log-probabilities of prompt and output.
std::vector<Request> mixed_requests(std::uint32_t vocab_size, std::uint32_t max_tokens) {
  constexpr std::size_t kLengths[kRequests] = {1, 5, 15, 16, 17, 31, 33, 47, 48, 49, 64, 96, 20, 12, 130, kLongPrompt};
  std::mt19937 random(7);
  std::vector<Request> requests;
  for (std::size_t i = 0; i < kRequests; ++i) {
    Request request;
    for (std::size_t t = 0; t < kLengths[i]; ++t) {
      request.prompt.push_back({static_cast<std::int32_t>(random() % vocab_size)});
    }
    request.params.max_tokens = max_tokens;
    request.params.ignore_eos = true;
    request.params.temperature = i % 3 == 0 ? 0.0F : 0.9F;
    request.params.top_p = i % 2 == 0 ? 1.0F : 0.95F;
    request.params.top_k = i % 4 == 1 ? 40 : 0;
    request.params.repetition_penalty = i % 5 == 2 ? 1.1F : 1.0F;
    request.params.seed = 1000 + i;
    if (i == 2) request.params.n = 2;
    if (i == 4) request.params.logprobs = 3;
    if (i == 10) request.params.prompt_logprobs = 1;
    requests.push_back(std::move(request));
  }
  return requests;
}

using Outcomes = std::vector<std::vector<Outcome>>;

struct ModelCase {
  const char* name;
  std::uint32_t max_tokens;  // generated per request
};

class Invariance : public ::testing::TestWithParam<ModelCase> {
 protected:
  void SetUp() override {
    const std::string name = GetParam().name;
    path_ = name == "small" ? small_model() : model_path(name);
    if (path_.empty()) GTEST_SKIP() << "the packaged model " << name << " has not been fetched";
    auto opened = open_checkpoint(path_);
    ASSERT_TRUE(opened) << opened.error().message;
    checkpoint_ = std::move(*opened);
    requests_ = mixed_requests(checkpoint_->spec().vocab_size, GetParam().max_tokens);
  }

  [[nodiscard]] static EngineConfig base() {
    EngineConfig config;
    config.threads = 2;
    config.max_num_seqs = 32;
    config.max_num_batched_tokens = 512;  // not what this machine measures today
    config.max_model_len = 1024;
    config.prefix_caching = false;  // cold; the tests of shared prefixes switch it on
    config.preemption = PreemptionMode::kRecompute;
    return config;
  }

  std::unique_ptr<StepRunner> runner(const EngineConfig& config, const std::string& isa = "",
                                     std::size_t layers = 1000) {
    if (isa.empty()) {
      ::unsetenv("OCTAVO_ISA");
    } else {
      ::setenv("OCTAVO_ISA", isa.c_str(), 1);
    }
    auto resources = build_resources(config, FirstLayers(*checkpoint_, layers), {}, {});
    ::unsetenv("OCTAVO_ISA");
    EXPECT_TRUE(resources) << resources.error().message;
    return std::make_unique<StepRunner>(std::move(*resources));
  }

  /// A pool so small that the requests push each other out of it.
  EngineConfig tight() {
    EngineConfig config = base();
    const KvGroups groups = runner(base())->resources().store->groups();
    config.kv_bytes = blocks_held(groups, 640, config.max_num_batched_tokens.value_or(512)) * groups.page_bytes;
    config.max_model_len = 600;
    return config;
  }

  /// All at once with default options: what every other way is held against. One run per model.
  const Outcomes& reference() {
    static std::map<std::string, Outcomes> runs;
    const auto found = runs.find(GetParam().name);
    if (found != runs.end()) return found->second;
    const auto runner = this->runner(base());
    Outcomes outcomes = runner->run(requests_);
    EXPECT_EQ(runner->counters().preempted, 0U);
    return runs.emplace(GetParam().name, std::move(outcomes)).first->second;
  }

  void expect_same(const Outcomes& got, const Outcomes& want, const std::string& way) {
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      for (std::size_t c = 0; c < got[i].size(); ++c) {
        EXPECT_EQ(got[i][c].finish, Finish::kLength) << way << ", request " << i;
        EXPECT_EQ(got[i][c].logits.size(), want[i][c].logits.size()) << way << ", request " << i;
        EXPECT_TRUE(same_bits(got[i][c], want[i][c])) << way << ", request " << i << ", choice " << c;
      }
    }
  }
  void expect_same_as_reference(const EngineConfig& config, const std::string& way) {
    expect_same(runner(config)->run(requests_), reference(), way);
  }

  std::string path_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::vector<Request> requests_;
};

/// Ways that one model is enough for.
class MoreWays : public Invariance {};

TEST_P(Invariance, ChoicesOfOneRequestDiffer) {
  const auto& choices = reference()[2];
  ASSERT_EQ(choices.size(), 2U);
  EXPECT_EQ(choices[0].logits.begin()->second, choices[1].logits.begin()->second) << "same prompt, same first row";
  EXPECT_NE(choices[0].tokens, choices[1].tokens) << "each choice draws for itself";
}

TEST_P(Invariance, Alone) {
  const auto runner = this->runner(base());
  Outcomes alone;
  for (const Request& request : requests_) alone.push_back(runner->run({request})[0]);
  expect_same(alone, reference(), "alone");
}

TEST_P(Invariance, PrefillChunks) {
  for (const std::uint32_t chunk : {1U, 7U, 64U, 512U}) {
    EngineConfig config = base();
    config.long_prefill_token_threshold = chunk;
    const auto runner = this->runner(config);
    expect_same(runner->run(requests_), reference(), "chunks of " + std::to_string(chunk));
    EXPECT_GE(runner->chunks, kLongPrompt / chunk - 1) << "prompts were really cut";
  }
}

TEST_P(Invariance, AnotherBudgetEveryStep) {
  for (const std::uint32_t seed : {1U, 2U}) {
    std::mt19937 random(seed);
    const auto runner = this->runner(base());
    runner->budget = [&] { return random() % 4 == 0 ? 0 : 1U << random() % 9; };
    expect_same(runner->run(requests_), reference(), "random budgets, seed " + std::to_string(seed));
    EXPECT_GT(runner->chunks, 10U) << "prompts were really cut";
  }
}

TEST_P(Invariance, Threads) {
  for (const std::uint32_t threads : {1U, 3U}) {  // the reference has two
    EngineConfig config = base();
    config.threads = threads;
    expect_same_as_reference(config, std::to_string(threads) + " threads");
  }
}

/// One long decode alone: its splits become tasks of their own at two threads, and are one task at one thread.
TEST_P(Invariance, ThreadsOnASingleLongSequence) {
  for (const std::uint32_t threads : {1U, 2U}) {
    EngineConfig config = base();
    config.threads = threads;
    expect_same({runner(config)->run({requests_.back()})[0]}, {reference().back()}, "alone and long");
  }
}

TEST_P(Invariance, PreemptionByRecompute) {
  const auto runner = this->runner(tight());
  expect_same(runner->run(requests_), reference(), "preempted");
  EXPECT_GT(runner->counters().preempted, 0U);
  EXPECT_EQ(runner->counters().swapped, 0U);
}

TEST_P(Invariance, PreemptionBySwap) {
  EngineConfig config = tight();
  config.preemption = PreemptionMode::kSwap;
  const auto runner = this->runner(config);
  expect_same(runner->run(requests_), reference(), "swapped");
  EXPECT_GT(runner->counters().swapped, 0U);
  EXPECT_GT(runner->counters().restored_tokens, 0U);
}

TEST_P(MoreWays, DamagedSwapsAreNoticedAndComputedAgain) {
  EngineConfig config = tight();
  config.preemption = PreemptionMode::kSwap;
  const auto runner = this->runner(config);
  runner->before_step = [&](const StepPlan& plan) {
    if (!plan.ops.loads.empty()) runner->resources().host->page(plan.ops.loads.front().slot)[7] ^= std::byte{1};
  };
  expect_same(runner->run(requests_), reference(), "damaged on the host");
  EXPECT_GT(runner->counters().failed_moves, 0U);
}

TEST_P(Invariance, PrefixHits) {
  EngineConfig config = base();
  config.prefix_caching = true;
  const auto runner = this->runner(config);
  expect_same(runner->run(requests_), reference(), "filling the cache");
  const std::uint64_t before = runner->counters().cached_tokens;
  expect_same(runner->run(requests_), reference(), "out of the cache");
  // The long prompt is a hit of all its full blocks, past windows too; the one with prompt log-probabilities looks
  // nothing up.
  EXPECT_GE(runner->counters().cached_tokens - before, kLongPrompt / 16 * 16 - 16);
  EXPECT_EQ(runner->run({requests_[10]})[0][0].cached_tokens, 0U);
  EXPECT_EQ(runner->run({requests_.back()})[0][0].cached_tokens, kLongPrompt - 16);
}

/// A conversation: the second turn's prompt is the first one's prompt and answer, and more.
TEST_P(MoreWays, DecodedBlocksAreCachedToo) {
  EngineConfig config = base();
  config.prefix_caching = true;
  const auto warm = this->runner(config);
  Request first = requests_[10];
  first.params.prompt_logprobs.reset();
  first.params.max_tokens = 40;
  const Outcome said = warm->run({first})[0][0];
  Request second = first;
  second.prompt.insert(second.prompt.end(), said.tokens.begin(), said.tokens.end());
  second.prompt.push_back({5});
  const Outcomes hit = warm->run({second});
  EXPECT_EQ(hit[0][0].cached_tokens, 96U) << "64 of the prompt, 32 of the answer";
  expect_same(hit, this->runner(base())->run({second}), "second turn");
}

TEST_P(Invariance, ForksShareTheirPrompt) {
  std::vector<Request> forked = {requests_[13], requests_.back(), requests_[4]};
  for (Request& request : forked) request.params.n = 4, request.params.temperature = 1.0F;
  EngineConfig alone = base();
  alone.batching = Batching::kStatic;  // closes before there is anything to share
  const auto apart = this->runner(alone), together = this->runner(base());
  expect_same(together->run(forked), apart->run(forked), "forked");
  EXPECT_EQ(apart->counters().forked_tokens, 0U);
  EXPECT_GT(together->counters().forked_tokens, 3 * (kLongPrompt - 1));
  EXPECT_GT(together->resources().kv->counters().copies, 0U) << "prompts end inside of blocks";
}

TEST_P(Invariance, MemoryStrategies) {
  for (const KvMemory memory : {KvMemory::kDynamic, KvMemory::kStatic}) {
    EngineConfig config = base();
    config.kv_memory = memory;
    config.max_model_len = 600;
    // Grows out of its first chunk while its neighbour is still there.
    requests_[3].prompt.assign(requests_.back().prompt.begin(), requests_.back().prompt.begin() + 254);
    const Outcomes want = this->runner(base())->run(requests_);
    const auto runner = this->runner(config);
    expect_same(runner->run(requests_), want, memory == KvMemory::kStatic ? "static memory" : "dynamic memory");
    EXPECT_EQ(runner->resources().kv->counters().moved_runs > 0, memory == KvMemory::kDynamic);
  }
}

TEST_P(Invariance, Policies) {
  for (const PolicyKind policy : {PolicyKind::kPriority, PolicyKind::kShortestRemaining}) {
    EngineConfig config = tight();
    config.policy = policy;
    for (std::size_t i = 0; i < requests_.size(); ++i) requests_[i].priority = -static_cast<std::int32_t>(i);
    expect_same_as_reference(config, "another policy");
  }
}

TEST_P(Invariance, WithoutKvCache) {
  EngineConfig config = base();
  config.kv_cache = false;
  const auto runner = this->runner(config);
  expect_same(runner->run(requests_), reference(), "without KV cache");
  std::uint64_t recomputed = 0;  // every token recomputes all before it
  for (const Request& request : requests_) {
    for (std::uint32_t i = 0; i < request.params.max_tokens; ++i) {
      recomputed += (request.prompt.size() + i) * request.params.n;
    }
  }
  EXPECT_EQ(runner->counters().computed_tokens, recomputed);
}

TEST_P(Invariance, StaticBatching) {
  EngineConfig config = base();
  config.batching = Batching::kStatic;
  config.max_num_seqs = 4;
  expect_same_as_reference(config, "static batches of 4");
}

TEST_P(MoreWays, BlockSizes) {
  for (const std::uint32_t block : {32U, 256U}) {
    EngineConfig config = base();
    config.block_tokens = block;
    expect_same_as_reference(config, "blocks of " + std::to_string(block));
  }
}

TEST_P(Invariance, EveryIsa) {
  for (const Kernels* kernels : runnable_kernels()) {
    const std::string isa = kernels->name;
    if (isa == "ref") continue;
    const auto runner = this->runner(base(), isa);
    EXPECT_EQ(runner->resources().report.isa, isa);
    expect_same(runner->run(requests_), reference(), isa);
  }
}

/// The scalar specification, on the first two layers: `ref` is slow by design.
TEST_P(Invariance, TheSpecificationItself) {
  std::vector<Request> few = {requests_[3], requests_[7], requests_.back()};
  for (Request& request : few) request.params.max_tokens = 2;
  Outcomes want;
  for (const Kernels* kernels : runnable_kernels()) {
    const auto runner = this->runner(base(), kernels->name, 2);
    EXPECT_EQ(runner->resources().report.isa, kernels->name);
    Outcomes got = runner->run(few);
    if (want.empty())
      want = std::move(got);
    else
      expect_same(got, want, std::string(kernels->name) + " against ref");
  }
}

TEST_P(MoreWays, OtherKvTypes) {
  for (const KvType type : {KvType::kF32, KvType::kF16}) {
    EngineConfig config = base();
    config.kv_type = type;
    const Outcomes whole = runner(config)->run(requests_);
    config.long_prefill_token_threshold = 7;
    config.threads = 1;
    expect_same(runner(config)->run(requests_), whole, std::string("chunks at KV type ") + kv_type_name(type));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, MoreWays, ::testing::Values(ModelCase{"small", 12}),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(Models, Invariance,
                         ::testing::Values(ModelCase{"small", 12}, ModelCase{"smollm2", 6},
                                           ModelCase{"gemma3-270m", 6}),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
                           return name;
                         });

}  // namespace
}  // namespace octavo::testing
