#include "cli/requests.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace octavo {
namespace {

/// Answers request i with its first token, in two pieces, from a thread of its own; has room for `kRoom` at once.
class EchoEngine : public Engine {
 public:
  static constexpr std::size_t kRoom = 3;

  ~EchoEngine() override {
    for (std::thread& thread : threads_) thread.join();
  }
  Result<RequestId> submit(Request request, Sink sink) override {
    if (request.prompt.size() > 4) return Error{ErrorCode::kContextLength, "too long", ""};
    if (running_ >= kRoom) return Error{ErrorCode::kExhausted, "full", ""};
    ++running_;
    threads_.emplace_back([this, id = request.prompt.front(), n = request.params.n, sink = std::move(sink)] {
      for (std::uint32_t choice = 0; choice < n; ++choice) {
        for (const bool last : {false, true}) {
          OutputEvent event;
          event.choice = choice;
          event.text = last ? "." : std::to_string(id.value);
          event.tokens = {id};
          if (last) event.finish = FinishReason::kStop;
          event.last = last && choice + 1 == n;
          if (event.last) --running_;
          sink(std::move(event));
        }
      }
    });
    return RequestId{threads_.size()};
  }
  void abort(RequestId) override {}
  Result<std::vector<std::vector<Completion>>> generate(std::vector<Request>) override { return Error{}; }
  const EngineReport& report() const override { return report_; }
  const Tokenizer* tokenizer() const override { return nullptr; }
  const ChatTemplate* chat_template() const override { return nullptr; }
  [[nodiscard]] std::vector<MemoryUse> memory() const override { return {}; }
  EngineStats stats() const override { return {}; }
  std::vector<RecentStep> recent_steps(std::size_t) const override { return {}; }
  Result<> health() const override { return Ok{}; }
  Result<> reset_prefix_cache() override { return Ok{}; }
  bool drain(std::chrono::milliseconds) override { return true; }

 private:
  EngineReport report_;
  std::atomic<std::size_t> running_ = 0;
  std::vector<std::thread> threads_;
};

Request request_of(std::vector<TokenId> prompt, std::uint32_t n = 1) {
  Request request;
  request.prompt = std::move(prompt);
  request.params.n = n;
  return request;
}

TEST(RunRequests, OutcomesInOrderThoughTheQueueIsSmall) {
  EchoEngine engine;
  std::vector<Request> requests;
  for (std::int32_t i = 0; i < 50; ++i) requests.push_back(request_of({TokenId{i}}));
  const auto outcomes = run_requests(engine, std::move(requests), OnEvent{});
  ASSERT_EQ(outcomes.size(), 50U);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    ASSERT_FALSE(outcomes[i].error);
    EXPECT_EQ(outcomes[i].choices.front().text, std::to_string(i) + ".");
    EXPECT_EQ(outcomes[i].choices.front().tokens.size(), 2U);
  }
}

TEST(RunRequests, ARefusedRequestLeavesTheOthersAlone) {
  EchoEngine engine;
  const auto outcomes =
      run_requests(engine, {request_of(std::vector<TokenId>(5)), request_of({TokenId{7}}, 2)}, OnEvent{});
  ASSERT_TRUE(outcomes[0].error);
  EXPECT_EQ(outcomes[0].error->code, ErrorCode::kContextLength);
  ASSERT_EQ(outcomes[1].choices.size(), 2U);
  EXPECT_EQ(outcomes[1].choices[1].text, "7.");
  EXPECT_EQ(outcomes[1].choices[1].choice, 1U);
}

}  // namespace
}  // namespace octavo
