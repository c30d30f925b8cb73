// The engine as its users see it: submit, stream, abort, refuse, drain, on a tiny model.
#include "octavo/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <span>
#include <thread>

#include "engine/resources.h"
#include "support/tiny_model.h"

namespace octavo::testing {
namespace {

std::vector<TokenId> tokens(std::initializer_list<int> ids) {
  std::vector<TokenId> out;
  for (const int id : ids) out.push_back({id});
  return out;
}

Request greedy(std::vector<TokenId> prompt, std::uint32_t max_tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.params.max_tokens = max_tokens;
  request.params.temperature = 0;
  request.params.ignore_eos = true;
  return request;
}

/// Gathers the events of one request; wait() returns when the last has come.
class Stream {
 public:
  Sink sink() {
    return [this](OutputEvent&& event) {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
      changed_.notify_all();
    };
  }
  void wait_for_first() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !events_.empty(); });
  }
  const std::vector<OutputEvent>& wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !events_.empty() && events_.back().last; });
    return events_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<OutputEvent> events_;
};

class EngineTest : public ::testing::Test {
 protected:
  EngineConfig config() const {
    EngineConfig config;
    config.model = file_.path();
    config.threads = 2;
    config.max_num_seqs = 8;
    config.max_num_batched_tokens = 64;
    return config;
  }
  static std::unique_ptr<Engine> load(const EngineConfig& config) {
    auto engine = Engine::load(config);
    EXPECT_TRUE(engine) << engine.error().message;
    return engine ? std::move(*engine) : nullptr;
  }
  static void expect_refused(const EngineConfig& config, const std::string& names) {
    const auto engine = Engine::load(config);
    ASSERT_FALSE(engine);
    EXPECT_NE(engine.error().message.find(names), std::string::npos) << engine.error().message;
  }
  static void expect_idle(const Engine& engine) {
    const EngineStats stats = engine.stats();
    EXPECT_EQ(stats.running, 0U);
    EXPECT_EQ(stats.waiting, 0U);
    EXPECT_EQ(stats.blocks_used, 0U) << "blocks leaked";
  }

  TempFile file_{write_tiny_model({}).bytes()};
};

TEST_F(EngineTest, GeneratesTheSameTokensStreamedAndWhole) {
  const auto engine = load(config());
  const auto whole = engine->generate({greedy(tokens({72, 101, 108}), 20)});
  ASSERT_TRUE(whole) << whole.error().message;
  const Completion& completion = (*whole)[0][0];
  EXPECT_EQ(completion.tokens.size(), 20U);
  EXPECT_EQ(completion.finish, FinishReason::kLength);
  EXPECT_EQ(completion.usage.prompt_tokens, 3U);
  EXPECT_EQ(completion.usage.completion_tokens, 20U);
  EXPECT_EQ(completion.text, *engine->tokenizer()->decode(completion.tokens, true));

  Stream stream;
  ASSERT_TRUE(engine->submit(greedy(tokens({72, 101, 108}), 20), stream.sink()));
  std::vector<TokenId> streamed;
  std::string text;
  for (const OutputEvent& event : stream.wait()) {
    streamed.insert(streamed.end(), event.tokens.begin(), event.tokens.end());
    text += event.text;
  }
  EXPECT_EQ(streamed, completion.tokens);
  EXPECT_EQ(text, completion.text);
  expect_idle(*engine);
}

TEST_F(EngineTest, SeedsRepeatAndChoicesDiffer) {
  const auto engine = load(config());
  Request request = greedy(tokens({1, 2, 3}), 16);
  request.params.temperature = 1.5F;
  request.params.seed = 7;
  request.params.n = 2;
  const auto runs = engine->generate({request, request});
  ASSERT_TRUE(runs);
  EXPECT_EQ((*runs)[0][0].tokens, (*runs)[1][0].tokens);
  EXPECT_EQ((*runs)[0][1].tokens, (*runs)[1][1].tokens);
  EXPECT_NE((*runs)[0][0].tokens, (*runs)[0][1].tokens);
}

TEST_F(EngineTest, WithoutKvCacheTheTokensAreTheSame) {
  EngineConfig naive = config();
  naive.kv_cache = false;
  const auto cached_engine = load(config());
  const auto naive_engine = load(naive);
  const auto prompt = tokens({10, 20, 30, 40, 50});
  const auto cached = cached_engine->generate({greedy(prompt, 12)});
  const auto recomputed = naive_engine->generate({greedy(prompt, 12)});
  ASSERT_TRUE(cached && recomputed);
  EXPECT_EQ((*cached)[0][0].tokens, (*recomputed)[0][0].tokens);
  EXPECT_EQ(cached_engine->stats().computed_tokens, 5U + 11U);
  EXPECT_EQ(naive_engine->stats().computed_tokens, 12U * 5U + 11U * 12U / 2U);
}

TEST_F(EngineTest, StopStringsAndStopTokensEndTheAnswer) {
  const auto engine = load(config());
  const auto free_run = engine->generate({greedy(tokens({65, 66}), 24)});
  ASSERT_TRUE(free_run);
  const Completion& whole = (*free_run)[0][0];

  Request by_token = greedy(tokens({65, 66}), 24);
  by_token.params.stop_token_ids = {whole.tokens[5]};
  const auto stopped = engine->generate({by_token});
  ASSERT_TRUE(stopped);
  EXPECT_EQ((*stopped)[0][0].finish, FinishReason::kStop);
  EXPECT_LE((*stopped)[0][0].tokens.size(), 6U);
  EXPECT_EQ((*stopped)[0][0].tokens.back(), whole.tokens[5]);

  Request by_text = greedy(tokens({65, 66}), 24);
  by_text.params.stop = {whole.text.substr(whole.text.size() / 2)};
  const auto cut = engine->generate({by_text});
  ASSERT_TRUE(cut);
  EXPECT_EQ((*cut)[0][0].finish, FinishReason::kStop);
  EXPECT_EQ((*cut)[0][0].stop_reason, by_text.params.stop[0]);
  EXPECT_EQ((*cut)[0][0].text, whole.text.substr(0, whole.text.find(by_text.params.stop[0])));
  expect_idle(*engine);
}

TEST_F(EngineTest, ScoresAPromptWithoutGenerating) {
  const auto engine = load(config());
  Request request = greedy(tokens({5, 6, 7, 8}), 0);
  request.params.prompt_logprobs = 2;
  const auto scored = engine->generate({request});
  ASSERT_TRUE(scored) << scored.error().message;
  const Completion& c = (*scored)[0][0];
  EXPECT_TRUE(c.tokens.empty());
  ASSERT_EQ(c.prompt_logprobs.size(), 4U);
  EXPECT_FALSE(c.prompt_logprobs[0].logprob);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(c.prompt_logprobs[i].id, request.prompt[i]);
    EXPECT_LT(*c.prompt_logprobs[i].logprob, 0);
    EXPECT_EQ(c.prompt_logprobs[i].top.size(), 2U);
  }
}

TEST_F(EngineTest, AbortFreesTheBlocks) {
  const auto engine = load(config());
  Stream running;
  const auto id = engine->submit(greedy(tokens({1}), 400), running.sink());
  ASSERT_TRUE(id);
  running.wait_for_first();
  engine->abort(*id);
  EXPECT_EQ(running.wait().back().finish, FinishReason::kAbort);
  EXPECT_EQ(engine->stats().finished_abort, 1U);
  expect_idle(*engine);
  engine->abort({12345});  // unknown: nothing happens
}

TEST_F(EngineTest, RefusesWithTheNumbers) {
  const auto engine = load(config());
  const auto refused = [&](const Request& request) {
    const auto result = engine->submit(request, [](OutputEvent&&) {});
    EXPECT_FALSE(result);
    return result ? Error{} : result.error();
  };
  const Error too_long = refused(greedy(tokens({1, 2, 3}), 600));
  EXPECT_EQ(too_long.code, ErrorCode::kContextLength);
  EXPECT_NE(too_long.message.find("603"), std::string::npos) << too_long.message;
  EXPECT_NE(too_long.message.find("512"), std::string::npos) << too_long.message;
  EXPECT_EQ(refused(greedy({}, 4)).field, "prompt");
  EXPECT_NE(refused(greedy(tokens({99999}), 4)).message.find("99999"), std::string::npos);
  Request hot = greedy(tokens({1}), 4);
  hot.params.temperature = -1;
  EXPECT_EQ(refused(hot).field, "temperature");
  expect_idle(*engine);
}

TEST_F(EngineTest, AFullQueueIsSaidSo) {
  EngineConfig small = config();
  small.max_num_seqs = 1;
  small.max_queued = 2;
  const auto engine = load(small);
  std::vector<std::unique_ptr<Stream>> streams;
  bool full = false;
  for (int i = 0; i < 8 && !full; ++i) {
    streams.push_back(std::make_unique<Stream>());
    const auto id = engine->submit(greedy(tokens({1}), 300), streams.back()->sink());
    full = !id && id.error().code == ErrorCode::kExhausted;
    if (!id) streams.pop_back();
  }
  EXPECT_TRUE(full);
  for (const auto& stream : streams) (void)stream->wait();
}

TEST_F(EngineTest, DrainFinishesOrAborts) {
  const auto engine = load(config());
  Stream quick;
  ASSERT_TRUE(engine->submit(greedy(tokens({1}), 4), quick.sink()));
  EXPECT_TRUE(engine->drain(std::chrono::seconds(30)));
  EXPECT_EQ(quick.wait().back().finish, FinishReason::kLength);
  const auto late = engine->submit(greedy(tokens({1}), 4), [](OutputEvent&&) {});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kUnavailable);

  const auto other = load(config());
  Stream slow;
  ASSERT_TRUE(other->submit(greedy(tokens({1}), 500), slow.sink()));
  EXPECT_FALSE(other->drain(std::chrono::milliseconds(0)));
  EXPECT_EQ(slow.wait().back().finish, FinishReason::kAbort);
}

TEST_F(EngineTest, DestructionEndsWhatRuns) {
  Stream stream;
  {
    const auto engine = load(config());
    ASSERT_TRUE(engine->submit(greedy(tokens({1}), 500), stream.sink()));
  }
  EXPECT_TRUE(stream.wait().back().last);
}

TEST_F(EngineTest, ManyRequestsShareASmallPool) {
  EngineConfig small = config();
  small.kv_bytes = 16 * 1024;  // two layers, two KV heads of 16, BF16: 256 bytes a token, so 64 tokens
  const auto engine = load(small);
  EXPECT_LT(engine->report().max_model_len, 512U);
  EXPECT_FALSE(engine->report().max_model_len_reason.empty());
  std::vector<Request> requests;
  for (int i = 0; i < 6; ++i) requests.push_back(greedy(tokens({i, i + 1, i + 2}), 40));
  const auto crowded = engine->generate(requests);
  const auto roomy = load(config())->generate(requests);
  ASSERT_TRUE(crowded && roomy);
  for (std::size_t i = 0; i < requests.size(); ++i) EXPECT_EQ((*crowded)[i][0].tokens, (*roomy)[i][0].tokens);
  EXPECT_GT(engine->stats().preemptions, 0U);
  expect_idle(*engine);
}

TEST_F(EngineTest, BudgetIsMeasuredWhereNoneIsGiven) {
  EXPECT_EQ(load(config())->report().max_num_batched_tokens, 64U);
  EngineConfig measured = config();
  measured.max_num_batched_tokens.reset();
  const auto engine = load(measured);
  const EngineReport& report = engine->report();
  EXPECT_EQ(report.max_num_batched_tokens % 16, 0U);
  EXPECT_GE(report.max_num_batched_tokens, measured.max_num_seqs);
  EXPECT_LE(report.max_num_batched_tokens, 512U);
  EXPECT_NE(report.max_num_batched_tokens_reason.find("decode-only steps"), std::string::npos);
}

TEST_F(EngineTest, MeasuringLeavesTheCacheUntouched) {
  const TinyModel gemma = one_tiny_model_per_arch().back();  // several groups, with windows
  const TempFile file(write_tiny_model(gemma).bytes());
  for (const std::string& path : {file_.path(), file.path()}) {
    EngineConfig few = config();
    few.model = path;
    few.kv_bytes = 64 * 1024;
    const auto resources = load_resources(few, {});
    ASSERT_TRUE(resources) << resources.error().message;
    const KvStore& store = *(*resources)->store;
    const PagedKv first = store.view(0);
    ASSERT_EQ(store.groups().layers[0].slice, 0U);
    const auto bytes = std::span(first.base - store.groups().layers[0].offset, store.bytes());
    EXPECT_TRUE(std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; }));
    EXPECT_EQ((*resources)->kv->counters().blocks_free, (*resources)->kv->counters().blocks_total);
  }
}

TEST_F(EngineTest, TargetsChangeNoToken) {
  std::vector<Request> requests;
  for (int i = 0; i < 6; ++i) {
    std::vector<TokenId> prompt = tokens({i, i + 1, i + 2});
    if (i % 2 == 1) prompt.resize(200, TokenId{i});
    requests.push_back(greedy(std::move(prompt), 40));
  }
  const auto plain = load(config())->generate(requests);
  EngineConfig strict = config();
  strict.target_tpot = std::chrono::milliseconds(1);
  strict.target_ttft = std::chrono::milliseconds(1);
  const auto paced = load(strict)->generate(requests);
  ASSERT_TRUE(plain && paced);
  for (std::size_t i = 0; i < requests.size(); ++i) EXPECT_EQ((*paced)[i][0].tokens, (*plain)[i][0].tokens);
}

TEST_F(EngineTest, BadSettingsAreRefusedByName) {
  EngineConfig bad = config();
  bad.block_tokens = 24;
  expect_refused(bad, "--block-size 24");
  bad = config();
  bad.max_num_batched_tokens = 4;
  expect_refused(bad, "--max-num-batched-tokens 4");
  bad = config();
  bad.max_model_len = 999'999'999;
  expect_refused(bad, "--max-model-len 999999999 must be between 1 and the model's context of 512 tokens");
  bad = config();
  bad.max_queued = 0;
  expect_refused(bad, "--max-queued 0");
  bad = config();
  bad.kv_fraction = 0;
  expect_refused(bad, "--kv-fraction 0");
  bad = config();
  bad.watermark = 1;
  expect_refused(bad, "--watermark 1");
  bad = config();
  bad.aging = std::chrono::hours(2);
  expect_refused(bad, "--aging-ms 7200000");
  bad = config();
  bad.target_tpot = std::chrono::milliseconds(0);
  expect_refused(bad, "--target-tpot-ms 0");
  bad = config();
  bad.target_ttft = std::chrono::hours(2);
  expect_refused(bad, "--target-ttft-ms 7200000");
  bad = config();
  bad.prefix_caching = true;
  bad.kv_memory = KvMemory::kStatic;
  expect_refused(bad, "--prefix-caching needs --kv-memory paged");
  bad = config();
  bad.kv_bytes = 1024;
  expect_refused(bad, "--kv-bytes");
  bad = config();
  bad.model = "/nonexistent/model.gguf";
  expect_refused(bad, "/nonexistent/model.gguf");
  bad = config();
  bad.chat_template_file = "/nonexistent/template.jinja";
  expect_refused(bad, "/nonexistent/template.jinja");
}

}  // namespace
}  // namespace octavo::testing
