// The trace file: what it says, that counters recounted from it are the engine's own, and what a full disk costs.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "engine/trace_writer.h"
#include "octavo/engine.h"
#include "support/tiny_model.h"

namespace octavo::testing {
namespace {

using json = nlohmann::json;

std::vector<json> read_lines(const std::string& path) {
  std::vector<json> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
  return lines;
}

std::string trace_path(const char* name) {
  return ::testing::TempDir() + "octavo_" + name + "_" + std::to_string(::getpid()) + ".jsonl";
}

std::unique_ptr<TraceWriter> open(const std::string& path, std::size_t queue_bytes = TraceWriter::kQueueBytes) {
  auto writer = TraceWriter::open(path, R"({"octavo_trace":1})", 2, queue_bytes);
  EXPECT_TRUE(writer) << writer.error().message;
  return writer ? std::move(*writer) : nullptr;
}

TEST(TraceWriter, EveryKindOfRecord) {
  const std::string path = trace_path("kinds");
  {
    const auto writer = open(path);
    StepRecord record;
    record.step = 3, record.rows = 2, record.tokens = 9, record.blocks_used = 4;
    const std::vector<BatchRow> batch = {{{7}, 0, 16, 8, 8}, {{5}, 1, 30, 1, 0}};
    writer->step(record, batch);
    RequestMoment moment;
    moment.request = {7}, moment.at_us = 55, moment.prompt_tokens = 24, moment.choices = 2, moment.priority = -1;
    writer->request(moment);
    moment.kind = RequestMoment::Kind::kFinished, moment.choice = 1, moment.finish = Finish::kDeadline;
    moment.completion_tokens = 6;
    writer->request(moment);
    KvEvents events;
    BlockHash name{};
    name.fill(std::byte{0xAB});
    events.hashes = {name, name, name};
    events.tokens = {{1}, {2}, {3}, {4}};
    events.events = {{KvEvent::Kind::kStored, 1, {0}, name, 0, 2, 0},
                     {KvEvent::Kind::kRemoved, 2, {1}, {}, 2, 1, 4},
                     {KvEvent::Kind::kCleared, 3, {}, {}, 3, 0, 4}};
    writer->kv(events);
    EXPECT_EQ(writer->lost(), 0U);
  }
  const auto lines = read_lines(path);
  ASSERT_EQ(lines.size(), 8U);
  EXPECT_EQ(lines[0], (json{{"octavo_trace", 1}}));
  EXPECT_EQ(lines[1]["step"], 3);
  EXPECT_EQ(lines[1]["tokens"], 9);
  EXPECT_EQ(lines[1]["blocks_used"], 4);
  EXPECT_EQ(lines[1]["batch"], (json{{7, 0, 16, 8, 8}, {5, 1, 30, 1, 0}}));
  EXPECT_EQ(lines[2], (json{{"request", 7},
                            {"event", "arrived"},
                            {"at_us", 55},
                            {"prompt_tokens", 24},
                            {"max_tokens", 0},
                            {"choices", 2},
                            {"priority", -1}}));
  EXPECT_EQ(lines[3]["reason"], "deadline");
  const std::string hex = [] {
    std::string out;
    for (int i = 0; i < 32; ++i) out += "ab";
    return out;
  }();
  EXPECT_EQ(lines[4], (json{{"kv", "stored"},
                            {"seq", 1},
                            {"group", 0},
                            {"parent", hex},
                            {"hashes", {hex, hex}},
                            {"tokens", {1, 2, 3, 4}}}));
  EXPECT_EQ(lines[5], (json{{"kv", "removed"}, {"seq", 2}, {"group", 1}, {"hashes", {hex}}}));
  EXPECT_EQ(lines[6], (json{{"kv", "cleared"}, {"seq", 3}}));
  EXPECT_EQ(lines[7], (json{{"end", true}, {"lost", 0}}));
  ::unlink(path.c_str());
}

TEST(TraceWriter, ASlowReaderCostsRecordsAndTheGapIsTold) {
  const std::string path = trace_path("slow");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::ifstream reader;
  std::thread opening([&] { reader.open(path); });
  auto writer = TraceWriter::open(path, "{}", 16, 4096);
  while (!writer) writer = TraceWriter::open(path, "{}", 16, 4096);  // until there is a reader
  opening.join();
  std::uint64_t pushed = 0;
  StepRecord record;
  for (; (*writer)->lost() < 10; ++pushed) record.step = pushed, (*writer)->step(record, {});
  std::thread closing([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // the reader has caught up meanwhile
    record.step = pushed++, (*writer)->step(record, {});
    writer->reset();
  });
  std::uint64_t steps = 0, told = 0, lost_at_end = 0;
  for (std::string line; std::getline(reader, line);) {
    const json parsed = json::parse(line);
    if (parsed.contains("step")) ++steps;
    if (parsed.contains("end"))
      lost_at_end = parsed["lost"];
    else if (parsed.contains("lost"))
      told += parsed["lost"].get<std::uint64_t>();
  }
  closing.join();
  EXPECT_GE(told, 10U);
  EXPECT_EQ(lost_at_end, told);
  EXPECT_EQ(steps + told, pushed);
  ::unlink(path.c_str());
}

TEST(TraceWriter, AFullDiskCostsRecordsOnly) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "this system has no /dev/full";
  ::testing::internal::CaptureStderr();
  {
    const auto writer = open("/dev/full", 4096);
    for (int i = 0; i < 1000; ++i) writer->step({}, {});
    EXPECT_GT(writer->lost(), 900U);
  }
  const std::string warning = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(warning.find("/dev/full"), std::string::npos) << warning;
  EXPECT_NE(warning.find("lost"), std::string::npos) << warning;
}

TEST(TraceWriter, APathThatCannotBeWrittenIsAnError) {
  const auto writer = TraceWriter::open("/nonexistent/trace.jsonl", "{}", 16);
  ASSERT_FALSE(writer);
  EXPECT_NE(writer.error().message.find("/nonexistent/trace.jsonl"), std::string::npos);
}

class EngineTrace : public ::testing::Test {
 protected:
  EngineConfig config(const std::string& trace) const {
    EngineConfig config;
    config.model = file_.path();
    config.threads = 1;
    config.max_num_seqs = 8;
    config.max_num_batched_tokens = 64;
    config.kv_bytes = 32 * 1024;  // 128 tokens: sequences are preempted
    config.trace_file = trace;
    return config;
  }
  static Request request(std::int32_t first, std::uint32_t prompt, std::uint32_t output) {
    Request request;
    for (std::uint32_t i = 0; i < prompt; ++i) request.prompt.push_back({(first + static_cast<std::int32_t>(i)) % 256});
    request.params.max_tokens = output;
    request.params.temperature = 0;
    request.params.ignore_eos = true;
    return request;
  }
  TempFile file_{write_tiny_model({}).bytes()};
};

TEST_F(EngineTrace, CountersRecountedFromTheFileAreTheEnginesOwn) {
  const std::string path = trace_path("recount");
  EngineStats stats;
  std::vector<RecentStep> recent;
  {
    auto engine = Engine::load(config(path));
    ASSERT_TRUE(engine) << engine.error().message;
    std::vector<Request> requests;
    for (std::int32_t i = 0; i < 12; ++i) requests.push_back(request(i % 3, 20, 30));
    requests[5].params.n = 2;
    requests[7].params.temperature = 1;
    ASSERT_TRUE((*engine)->generate(requests));
    Request late = request(9, 4, 90);
    late.deadline = std::chrono::milliseconds(1);
    const auto ran_out = (*engine)->generate({late});
    if (!ran_out) {
      EXPECT_EQ(ran_out.error().code, ErrorCode::kDeadline);
    }
    // The step that only reports the last as finished comes after its event.
    std::uint64_t finished = 0;
    do {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      stats = (*engine)->stats();
      recent = (*engine)->recent_steps(100000);
      finished = 0;
      for (const RecentStep& step : recent) finished += step.record.finished;
    } while (finished < 14 || stats.steps != recent.back().record.step);
  }
  EXPECT_GT(stats.preemptions, 0U) << "the pool is large enough: nothing of interest happens";
  std::map<std::string, std::uint64_t> sum, finished;
  std::uint64_t steps = 0, arrived = 0, scheduled = 0, first_tokens = 0, completions = 0, rows = 0, kv_events = 0;
  std::set<std::string> names;  // of cached blocks
  for (const json& line : read_lines(path)) {
    if (line.contains("step")) {
      ++steps;
      EXPECT_EQ(line["step"], steps);
      EXPECT_EQ(line["batch"].size(), line["rows"].get<std::size_t>());
      std::uint64_t tokens = 0, prompt = 0;
      for (const json& row : line["batch"])
        tokens += row[3].get<std::uint64_t>(), prompt += row[4].get<std::uint64_t>();
      EXPECT_EQ(line["tokens"], tokens);
      EXPECT_EQ(line["prompt_tokens"], prompt);
      EXPECT_LE(tokens, line["budget"].get<std::uint64_t>());
      rows += line["batch"].size();
      for (const auto& [name, value] : line.items()) {
        if (value.is_number_unsigned()) sum[name] += value.get<std::uint64_t>();
      }
    } else if (line.contains("kv")) {
      EXPECT_EQ(line["seq"], ++kv_events);
      for (const json& hash : line["hashes"]) {
        if (line["kv"] == "stored") {
          EXPECT_TRUE(names.insert(hash).second) << "stored twice";
        } else {
          EXPECT_EQ(names.erase(hash), 1U) << "removed, but never stored";
        }
      }
      if (line["kv"] == "stored") {
        EXPECT_EQ(line["tokens"].size(), 16 * line["hashes"].size());
      }
    } else if (line.contains("event")) {
      arrived += line["event"] == "arrived", scheduled += line["event"] == "scheduled";
      first_tokens += line["event"] == "first_token";
      if (line["event"] == "finished") {
        ++finished[line["reason"]];
        completions += line["completion_tokens"].get<std::uint64_t>();
      }
    }
  }
  EXPECT_EQ(steps, stats.steps);
  EXPECT_EQ(sum["tokens"], stats.computed_tokens);
  EXPECT_EQ(sum["prompt_tokens"], stats.prompt_tokens);
  EXPECT_EQ(sum["sampled_tokens"], stats.generated_tokens);
  EXPECT_EQ(completions, stats.generated_tokens);
  EXPECT_EQ(sum["admitted"], stats.admitted);
  EXPECT_EQ(sum["resumed"], stats.resumed);
  EXPECT_EQ(sum["preempted_recompute"], stats.preemptions_recompute);
  EXPECT_EQ(sum["preempted_swap"], stats.preemptions_swap);
  EXPECT_EQ(stats.preemptions_recompute + stats.preemptions_swap, stats.preemptions);
  EXPECT_EQ(sum["lookup_tokens"], stats.prefix_queries);
  EXPECT_EQ(sum["cached_tokens"], stats.prefix_hits);
  EXPECT_EQ(sum["forked_tokens"], stats.forked_tokens);
  EXPECT_EQ(sum["recovered_tokens"], stats.recovered_tokens);
  EXPECT_EQ(sum["decode_rows"] + sum["prompt_rows"], rows);
  EXPECT_EQ(finished["stop"], stats.finished_stop);
  EXPECT_EQ(finished["length"], stats.finished_length);
  EXPECT_EQ(finished["abort"], stats.finished_abort);
  EXPECT_EQ(finished["deadline"], stats.finished_deadline);
  EXPECT_EQ(finished["error"], stats.finished_error);
  EXPECT_EQ(sum["finished"], 14U);
  EXPECT_EQ(arrived, 13U);
  EXPECT_GE(scheduled, 13U);
  EXPECT_GE(first_tokens, 13U);
  EXPECT_GT(stats.prefix_hits, 0U) << "equal prompts, and nothing was shared";
  EXPECT_GT(names.size(), 0U);
  EXPECT_LE(names.size(), stats.blocks_total);
  EXPECT_EQ(stats.trace_lost, 0U);
  ASSERT_FALSE(recent.empty());
  EXPECT_EQ(recent.back().record.step, steps);
  ::unlink(path.c_str());
}

TEST_F(EngineTrace, AFileThatCannotBeWrittenIsToldAtLoad) {
  const auto engine = Engine::load(config("/nonexistent/trace.jsonl"));
  ASSERT_FALSE(engine);
  EXPECT_NE(engine.error().message.find("--trace /nonexistent/trace.jsonl"), std::string::npos);
}

TEST_F(EngineTrace, TheCacheIsResetBetweenSteps) {
  auto engine = Engine::load(config(""));
  ASSERT_TRUE(engine) << engine.error().message;
  EXPECT_TRUE((*engine)->reset_prefix_cache());
  std::promise<void> started;
  std::atomic<bool> told{false};
  std::promise<void> ended;
  const auto id = (*engine)->submit(request(1, 4, 100), [&](OutputEvent&& event) {
    if (!told.exchange(true)) started.set_value();
    if (event.last) ended.set_value();
  });
  ASSERT_TRUE(id);
  started.get_future().wait();
  const auto busy = (*engine)->reset_prefix_cache();
  if (!busy) {
    EXPECT_EQ(busy.error().code, ErrorCode::kBusy);
  }
  ended.get_future().wait();
  EXPECT_TRUE((*engine)->reset_prefix_cache());
}

TEST_F(EngineTrace, SaltAndDeadlineHaveLimits) {
  auto engine = Engine::load(config(""));
  ASSERT_TRUE(engine) << engine.error().message;
  const auto refused_field = [&](const Request& bad) {
    const auto result = (*engine)->submit(bad, [](OutputEvent&&) {});
    return result ? std::string("accepted") : result.error().field;
  };
  Request bad = request(1, 4, 4);
  bad.cache_salt.assign(kMaxCacheSaltBytes + 1, 's');
  EXPECT_EQ(refused_field(bad), "cache_salt");
  bad = request(1, 4, 4);
  bad.deadline = std::chrono::milliseconds(0);
  EXPECT_EQ(refused_field(bad), "deadline_ms");
  bad.deadline = kMaxDeadline + std::chrono::milliseconds(1);
  EXPECT_EQ(refused_field(bad), "deadline_ms");
}

}  // namespace
}  // namespace octavo::testing
