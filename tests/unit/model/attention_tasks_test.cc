#include "model/attention_tasks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <vector>

namespace octavo {
namespace {

constexpr std::uint32_t kKvHeads = 3, kGroup = 4;

KvRow row(std::uint32_t first_pos, std::uint32_t tokens, std::uint32_t act_row) {
  return {nullptr, 0, 0, first_pos, tokens, act_row};
}

AttentionTasks list(std::span<const KvRow> rows, std::uint32_t window, std::uint32_t threads,
                    std::uint32_t max_states = 100'000) {
  AttentionTasks out;
  list_attention_tasks(rows, kKvHeads, kGroup, window, threads, max_states, out);
  return out;
}

std::size_t partial_tasks(const AttentionTasks& work) {
  return static_cast<std::size_t>(
      std::ranges::count_if(work.tasks, [](const AttnTask& task) { return task.state != AttnTask::kDirect; }));
}

/// Each token meets each split that it sees once, and every state that a merge reads was written by one task.
void expect_whole(std::span<const KvRow> rows, std::uint32_t window, const AttentionTasks& work) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>, int> met;  // row, head, token, split
  std::vector<int> written(work.num_states), read(work.num_states);
  for (const AttnTask& task : work.tasks) {
    ASSERT_LE(task.token_end - task.token_begin, kAttnTileTokens);
    for (std::uint32_t token = task.token_begin; token < task.token_end; ++token) {
      for (std::uint32_t split = task.split_begin; split < task.split_end; ++split) {
        ++met[{task.row, task.kv_head, token, split}];
      }
    }
    if (task.state == AttnTask::kDirect) continue;
    ASSERT_EQ(task.split_end, task.split_begin + 1);
    for (std::uint32_t s = 0; s < (task.token_end - task.token_begin) * kGroup; ++s) ++written.at(task.state + s);
  }
  for (const MergeTask& merge : work.merges) {
    for (std::uint32_t split = 0; split < merge.num_splits; ++split) {
      for (std::uint32_t g = 0; g < kGroup; ++g) {
        ++read.at(merge.state_begin + split * merge.states_per_split + g);
      }
    }
  }
  EXPECT_EQ(written, std::vector<int>(work.num_states, 1));
  EXPECT_EQ(read, std::vector<int>(work.num_states, 1));
  for (const auto& [key, times] : met) EXPECT_EQ(times, 1);
  for (std::uint32_t r = 0; r < rows.size(); ++r) {
    for (std::uint32_t token = 0; token < rows[r].num_tokens; ++token) {
      const std::uint32_t pos = rows[r].first_pos + token;
      const std::uint32_t first = window == 0 || pos < window ? 0 : pos + 1 - window;
      for (std::uint32_t split = first / kSplitTokens; split <= pos / kSplitTokens; ++split) {
        for (std::uint32_t head = 0; head < kKvHeads; ++head) EXPECT_EQ((met[{r, head, token, split}]), 1);
      }
    }
  }
}

TEST(AttentionTasks, CoverEveryTokenAndSplitOnce) {
  const KvRow rows[] = {row(3000, 4, 0), row(10, 1, 4), row(700, 37, 5), row(255, 2, 42), row(5000, 1, 44)};
  for (const std::uint32_t window : {0U, 512U}) {
    for (const std::uint32_t threads : {1U, 2U, 16U}) {
      for (const std::uint32_t max_states : {0U, 500U, 100'000U}) {
        const AttentionTasks work = list(rows, window, threads, max_states);
        EXPECT_LE(work.num_states, max_states);
        expect_whole(rows, window, work);
      }
    }
  }
}

TEST(AttentionTasks, ALargeShareOfTheWorkIsCutBySplits) {
  const KvRow decode[] = {row(3000, 1, 0)};
  EXPECT_EQ(partial_tasks(list(decode, 0, 2)), 12 * kKvHeads);
  EXPECT_EQ(partial_tasks(list(decode, 0, 1)), 0U) << "one thread gains nothing";
  const KvRow short_one[] = {row(200, 1, 0)};
  EXPECT_EQ(partial_tasks(list(short_one, 0, 2)), 0U) << "one split cannot be cut";

  const KvRow chunk_beside_stream[] = {row(500, 1, 0), row(3000, 4, 1)};
  const AttentionTasks work = list(chunk_beside_stream, 0, 2);
  EXPECT_EQ(partial_tasks(work), 12 * kKvHeads) << "the chunk alone";
  EXPECT_EQ(work.merges.size(), 4 * kKvHeads);
}

TEST(AttentionTasks, ManyEqualTasksStayWhole) {
  std::vector<KvRow> rows;
  for (std::uint32_t r = 0; r < 8; ++r) rows.push_back(row(3000, 1, r));
  EXPECT_EQ(partial_tasks(list(rows, 0, 2)), 0U);
  const KvRow prompt[] = {row(3000, 128, 0)};
  EXPECT_EQ(partial_tasks(list(prompt, 0, 2)), 0U);
}

}  // namespace
}  // namespace octavo
