// The log of recent steps, and what a step is told as.
#include "engine/step_log.h"

#include <gtest/gtest.h>

#include <thread>

#include "engine/byte_queue.h"
#include "support/counting_new.h"

namespace octavo::testing {
namespace {

StepRecord numbered(std::uint64_t step, std::uint32_t rows) {
  StepRecord record;
  record.step = step, record.rows = rows, record.tokens = static_cast<std::uint32_t>(7 * step);
  return record;
}

std::vector<BatchRow> batch_for(std::uint64_t step, std::uint32_t rows) {
  std::vector<BatchRow> batch(rows);
  for (std::uint32_t i = 0; i < rows; ++i) batch[i] = {{step}, i, 10 * i, 1, 0};
  return batch;
}

void expect_batch(const RecentStep& step) {
  for (std::uint32_t i = 0; i < step.batch.size(); ++i) {
    ASSERT_EQ(step.batch[i].request.value, step.record.step);
    ASSERT_EQ(step.batch[i].choice, i);
  }
}

TEST(StepRecordOf, CountsPlanAndResult) {
  StepPlan plan;
  plan.step = {9};
  plan.rows = {{{1}, {0}, 0, 5, 0, 0, 5}, {{2}, {8}, 5, 1, 1, 1, 0}, {{3}, {4}, 6, 2, 1, 1, 1}};
  plan.tokens.resize(8);
  plan.admitted = {{{1}, 16, 0, 0, 0}, {{2}, 0, 5, 0, 0}, {{3}, 3, 0, 0, 1}, {{4}, 0, 0, 32, 1}};
  plan.preempted = {{{5}, 20, 0}, {{6}, 1, 30}, {{7}, 10, 0}};
  plan.finished = {{8}, {9}};
  plan.ops.saves.resize(2), plan.ops.loads.resize(3), plan.ops.copies.resize(4), plan.ops.zeros.resize(5);
  StepResult result;
  result.rows = {
      {{1}, {5}, 0, 0, RowEnd::kGoesOn}, {{2}, {9}, 0, 1, RowEnd::kStopped}, {{3}, {4}, 1, 0, RowEnd::kFailed}};
  StepFacts facts;
  facts.begin = Micros(100), facts.run = Micros(20), facts.duration = Micros(30);
  facts.budget = 64, facts.running = 3, facts.waiting = 2, facts.lookup_tokens = 21;
  facts.kv.blocks_total = 10, facts.kv.blocks_free = 7, facts.kv.blocks_cached = 4;
  facts.kv.host_total = 6, facts.kv.host_free = 5;
  const StepRecord r = record_of(plan, result, facts);
  EXPECT_EQ(r.step, 9U);
  EXPECT_EQ(r.begin_us + r.run_us + r.duration_us, 150);
  EXPECT_EQ(r.rows, 3U);
  EXPECT_EQ(r.decode_rows, 1U);
  EXPECT_EQ(r.prompt_rows, 2U);
  EXPECT_EQ(r.failed_rows, 1U);
  EXPECT_EQ(r.tokens, 8U);
  EXPECT_EQ(r.prompt_tokens, 6U);
  EXPECT_EQ(r.budget, 64U);
  EXPECT_EQ(r.sampled_tokens, 1U);
  EXPECT_EQ(r.admitted, 4U);
  EXPECT_EQ(r.resumed, 2U);
  EXPECT_EQ(r.lookup_tokens, 21U);
  EXPECT_EQ(r.cached_tokens, 16U);
  EXPECT_EQ(r.forked_tokens, 5U);
  EXPECT_EQ(r.recovered_tokens, 35U);
  EXPECT_EQ(r.preempted_recompute, 2U);
  EXPECT_EQ(r.preempted_swap, 1U);
  EXPECT_EQ(r.lost_tokens, 31U);
  EXPECT_EQ(r.finished, 2U);
  EXPECT_EQ(r.running, 3U);
  EXPECT_EQ(r.waiting, 2U);
  EXPECT_EQ(r.blocks_used, 3U);
  EXPECT_EQ(r.blocks_cached, 4U);
  EXPECT_EQ(r.host_used, 1U);
  EXPECT_EQ(r.saves * 1000 + r.loads * 100 + r.copies * 10 + r.zeros, 2345U);
}

TEST(StepLog, KeepsTheLastOnes) {
  StepLog log(4, 10);
  EXPECT_TRUE(log.recent(100).empty());
  for (std::uint64_t step = 1; step <= 9; ++step) log.add(numbered(step, 3), batch_for(step, 3));
  const auto recent = log.recent(100);
  ASSERT_EQ(recent.size(), 4U);
  EXPECT_EQ(recent.front().record.step, 6U);
  EXPECT_EQ(recent.back().record.tokens, 63U);
  EXPECT_TRUE(recent.front().batch.empty()) << "ten rows hold three batches";
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(recent[i].batch.size(), 3U);
    expect_batch(recent[i]);
  }
  ASSERT_EQ(log.recent(2).size(), 2U);
  EXPECT_EQ(log.recent(2).front().record.step, 8U);

  log.add(numbered(10, 11), batch_for(10, 11));  // more than are ever kept
  EXPECT_EQ(log.recent(1).front().record.step, 10U);
  EXPECT_TRUE(log.recent(1).front().batch.empty());
}

TEST(StepLog, AReaderSeesWholeSteps) {
  constexpr std::uint64_t kSteps = 20000;
  StepLog log(8, 32);
  std::atomic<bool> ends{false};
  std::thread reader([&] {
    while (!ends) {
      for (const RecentStep& step : log.recent(8)) {
        ASSERT_EQ(step.record.tokens, 7 * step.record.step);
        expect_batch(step);
      }
    }
  });
  const auto batch = batch_for(0, 5);
  for (std::uint64_t step = 1; step <= kSteps; ++step) log.add(numbered(step, 5), batch_for(step, 5));
  ends = true;
  reader.join();
  EXPECT_EQ(log.recent(1).front().record.step, kSteps);
}

TEST(StepLog, AddingTakesNoMemory) {
  StepLog log(16, 64);
  const auto batch = batch_for(1, 5);
  const std::uint64_t before = heap_calls;
  for (std::uint64_t step = 1; step <= 100; ++step) log.add(numbered(step, 5), batch);
  EXPECT_EQ(heap_calls, before);
}

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(ByteQueue, MessagesComeOutWholeAndInOrder) {
  ByteQueue queue(100);
  std::vector<std::byte> message;
  EXPECT_FALSE(queue.pop(message));
  const std::string letters = "abcdefghijklmnopqrstuvwxyz";
  std::string pushed, popped;
  for (std::size_t i = 0; i < 200; ++i) {
    const std::string a = letters.substr(0, i % 20), b = letters.substr(0, i % 7);
    const std::array parts{bytes(a), bytes(b)};
    while (!queue.push(parts)) {
      ASSERT_TRUE(queue.pop(message));
      popped += std::string(reinterpret_cast<const char*>(message.data()), message.size()) + "|";
    }
    pushed += a + b + "|";
  }
  while (queue.pop(message)) popped += std::string(reinterpret_cast<const char*>(message.data()), message.size()) + "|";
  EXPECT_EQ(popped, pushed);
  const std::string large(93, 'x');
  EXPECT_FALSE(queue.push(std::array{bytes(large)})) << "larger than the queue with its length";
}

}  // namespace
}  // namespace octavo::testing
