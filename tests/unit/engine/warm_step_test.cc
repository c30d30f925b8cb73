// A warm step, from the plan to its tokens, takes nothing from the heap.
#include <gtest/gtest.h>

#include <memory>

#include "engine/resources.h"
#include "support/heap_calls.h"
#include "support/tiny_model.h"

namespace octavo::testing {
namespace {

class WarmStep : public ::testing::Test {
 protected:
  void load(const TinyModel& model) {
    file_ = std::make_unique<TempFile>(write_tiny_model(model).bytes());
    EngineConfig config;
    config.model = file_->path();
    config.threads = 2;
    config.max_num_seqs = 8;
    config.max_num_batched_tokens = 64;
    auto resources = load_resources(config, {});
    ASSERT_TRUE(resources) << resources.error().message;
    r_ = std::move(*resources);
  }
  void add(std::uint64_t id, std::size_t prompt_tokens, const SamplingParams& params) {
    const auto request = std::make_shared<Request>();
    for (std::size_t t = 0; t < prompt_tokens; ++t) {
      request->prompt.push_back({static_cast<std::int32_t>((7 * t + 31 * id) % kTinyVocab)});
    }
    request->params = params;
    request->params.max_tokens = 400;
    request->params.ignore_eos = true;
    r_->sampling->add({id}, request, id, 0);
    SeqLimits limits;
    limits.max_new_tokens = 400;
    ASSERT_EQ(r_->scheduler->add({id}, limits, request->prompt, {}).why, Refusal::Why::kNone);
  }
  std::uint64_t heap_calls_of_a_step() {
    const std::uint64_t before = heap_calls;
    const std::uint32_t budget = r_->pacer->budget(*r_->scheduler, *r_->kv, {});
    const bool planned = r_->scheduler->schedule(plan_, budget);
    if (planned) {
      r_->scheduler->commit(plan_);
      r_->executor->run(plan_, result_);
      r_->scheduler->apply(result_);
    }
    return heap_calls - before;
  }

  std::unique_ptr<TempFile> file_;
  std::unique_ptr<EngineResources> r_;
  StepPlan plan_;
  StepResult result_;
};

TEST_F(WarmStep, TakesNothingFromTheHeap) {
  for (const std::uint32_t window : {0U, 64U}) {
    TinyModel model{.context = 1024};
    if (window != 0) model.arch = "gemma3", model.window = window, model.qk_norm = model.post_norms = true;
    ASSERT_NO_FATAL_FAILURE(load(model));
    SamplingParams greedy, top_p, penalised;
    greedy.temperature = 0;
    top_p.temperature = 0.8F, top_p.top_p = 0.9F, top_p.top_k = 40;
    penalised.presence_penalty = 0.5F, penalised.min_p = 0.05F;
    add(1, 300, greedy);
    add(2, 20, top_p);
    add(3, 100, penalised);
    // The first steps prefill and decode once; then blocks, splits and sampled tokens keep coming.
    for (int step = 0; step < 20; ++step) (void)heap_calls_of_a_step();
    std::uint64_t taken = 0;
    for (int step = 0; step < 360; ++step) taken += heap_calls_of_a_step();
    EXPECT_EQ(taken, 0U) << "window " << window;
    EXPECT_EQ(result_.rows.size(), 3U);
  }
}

}  // namespace
}  // namespace octavo::testing
