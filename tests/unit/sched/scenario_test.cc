// Runs every file of tests/scenario; its README.md has the format.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <utility>

#include "kv/block_hash.h"
#include "support/toy_executor.h"

namespace octavo {
namespace {

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) out.push_back(part);
  return out;
}

/// One command: words, and key=value options.
struct Command {
  std::vector<std::string> words;
  std::map<std::string, std::string> options;

  explicit Command(const std::string& line) {
    std::istringstream in(line);
    for (std::string word; in >> word;) {
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos) {
        words.push_back(word);
      } else {
        options[word.substr(0, equals)] = word.substr(equals + 1);
      }
    }
  }
  [[nodiscard]] std::int64_t number(const std::string& key, std::int64_t otherwise) const {
    const auto it = options.find(key);
    return it == options.end() ? otherwise : std::stoll(it->second);
  }
  [[nodiscard]] std::uint32_t count(const std::string& key, std::uint32_t otherwise) const {
    return static_cast<std::uint32_t>(number(key, otherwise));
  }
  [[nodiscard]] std::string text(const std::string& key, const std::string& otherwise) const {
    const auto it = options.find(key);
    return it == options.end() ? otherwise : it->second;
  }
  [[nodiscard]] std::string from(std::size_t word) const {
    std::string out;
    for (std::size_t i = word; i < words.size(); ++i) out += (i > word ? " " : "") + words[i];
    return out;
  }
};

class Scenario {
 public:
  void execute(const Command& c) {
    const std::string& verb = c.words.at(0);
    const bool asks = verb == "expect" && c.words.at(1) == "refused";
    EXPECT_TRUE(asks || refusal_.why == Refusal::Why::kNone) << "the last add was refused: " << text_of(refusal_);
    if (!asks && c.words.at(1 % c.words.size()) != "counters") {
      static const std::set<std::string> known = {
          "blocks",    "block",    "groups",   "len",     "caching",      "memory", "chunk",
          "host",      "policy",   "aging",    "budget",  "per_token",    "seqs",   "threshold",
          "watermark", "batching", "queue",    "discard", "preemption",   "salt",   "max",
          "priority",  "at",       "deadline", "group",   "prompt_logits"};
      for (const auto& [key, value] : c.options) EXPECT_TRUE(known.contains(key)) << "no such option: " << key;
    }
    if (verb == "pool") return pool(c);
    if (verb == "scheduler") return scheduler(c);
    if (verb == "admit") return admit(c);
    if (verb == "release") return kv_->release(id(c.words.at(1)));
    if (verb == "reset") {
      EXPECT_EQ(kv_->reset_prefix_cache(), c.words.size() == 1);
      return;
    }
    if (verb == "add") return add(c);
    if (verb == "fork") return fork(c);
    if (verb == "fail_moves") {
      fail_moves_ = c.words.at(1) == "on";
      return;
    }
    if (verb == "stop") {
      ends_[id(c.words.at(1))] = RowEnd::kStopped;
      return;
    }
    if (verb == "fail") {
      ends_[id(c.words.at(1))] = RowEnd::kFailed;
      return;
    }
    if (verb == "plan") return plan(c);
    if (verb == "run") return run();
    if (verb == "abort") return scheduler_->finish(id(c.words.at(1)), Finish::kAbort);
    if (verb == "step") {
      for (int n = c.words.size() > 1 ? std::stoi(c.words[1]) : 1; n > 0; --n) step(c);
      return;
    }
    if (verb == "drain") {
      for (int n = 0; scheduler_->has_work() && !testing::Test::HasFailure(); ++n) {
        ASSERT_LT(n, 100'000) << "somebody never finishes";
        step(c);
      }
      return;
    }
    if (verb == "expect") return expect(c);
    ADD_FAILURE() << "no such command: " << verb;
  }

 private:
  SeqId id(const std::string& name) {
    if (!ids_.contains(name)) {
      const SeqId fresh{ids_.size() + 1};
      ids_[name] = fresh, names_[fresh] = name;
    }
    return ids_[name];
  }

  std::vector<TokenId> tokens(const std::string& text) {
    std::vector<TokenId> out;
    for (const std::string& range : split(text, '+')) {
      const std::size_t dots = range.find("..");
      if (dots == std::string::npos) {
        const std::vector<TokenId>& said = known_[range];
        EXPECT_FALSE(said.empty()) << range << " has said nothing";
        out.insert(out.end(), said.begin(), said.end());
        continue;
      }
      for (int t = std::stoi(range.substr(0, dots)), end = std::stoi(range.substr(dots + 2)); t < end; ++t) {
        out.push_back({t});
      }
    }
    return out;
  }

  void pool(const Command& c) {
    *this = Scenario();
    config_.num_blocks = c.count("blocks", 0);
    config_.block_tokens = c.count("block", 16);
    config_.max_model_len = c.count("len", 4096);
    config_.prefix_caching = c.text("caching", "off") == "on";
    const std::string memory = c.text("memory", "paged");
    config_.memory = memory == "static"    ? KvMemory::kStatic
                     : memory == "dynamic" ? KvMemory::kDynamic
                                           : KvMemory::kPaged;
    config_.chunk_tokens = c.count("chunk", 256);
    config_.host_blocks = c.count("host", 0);
    config_.events = true;
    for (const std::string& group : split(c.text("groups", "full"), ',')) {
      config_.groups.push_back({group == "full" ? 0U : static_cast<std::uint32_t>(std::stoul(group))});
    }
    kv_ = std::make_unique<KvManager>(config_);
  }

  void scheduler(const Command& c) {
    SchedulerConfig s;
    s.max_num_batched_tokens = c.count("budget", 512);
    s.max_num_seqs = config_.max_seqs = c.count("seqs", 64);
    s.long_prefill_token_threshold = c.count("threshold", 0);
    s.watermark_blocks = c.count("watermark", 0);
    s.max_queued = c.count("queue", 4096);
    s.max_model_len = config_.max_model_len;
    s.batching = c.text("batching", "continuous") == "static" ? Batching::kStatic : Batching::kContinuous;
    s.discard_kv_after_sample = c.text("discard", "off") == "on";
    config_.max_step_tokens = s.max_num_batched_tokens;
    if (c.text("preemption", "recompute") == "swap") s.preemption = PreemptionMode::kSwap;
    const std::string policy = c.text("policy", "fcfs");
    if (policy == "fcfs") policy_ = std::make_unique<Fcfs>();
    if (policy == "priority") policy_ = std::make_unique<Priority>(Micros{c.number("aging", 0)});
    if (policy == "shortest") policy_ = std::make_unique<ShortestRemaining>(Micros{c.number("per_token", 1)});
    kv_ = std::make_unique<KvManager>(config_);
    scheduler_ = std::make_unique<Scheduler>(s, *policy_, *kv_);
    executor_ = std::make_unique<test::ToyExecutor>(config_, *scheduler_);
    executor_->move_fails = [this](const BlockMove&) { return fail_moves_; };
    executor_->end_of = [this](const StepRow& row) {
      const auto end = ends_.find(row.seq);
      if (end == ends_.end() || (end->second == RowEnd::kStopped && row.num_samples == 0)) return RowEnd::kGoesOn;
      const RowEnd how = end->second;
      ends_.erase(end);
      return how;
    };
  }

  void admit(const Command& c) {
    const SeqId seq = id(c.words.at(1));
    const std::vector<TokenId> ids = tokens(c.words.at(2));
    const Pos end{static_cast<std::uint32_t>(ids.size())};
    std::vector<BlockHash> chain;
    const BlockHash root = root_hash("toy", c.text("salt", ""));
    BlockHash parent = root;
    for (std::size_t i = 0; i + config_.block_tokens <= ids.size(); i += config_.block_tokens) {
      chain.push_back(parent = child_hash(parent, std::span(ids).subspan(i, config_.block_tokens)));
    }
    BlockOps ops;
    kv_->begin(ops);
    const PrefixHit hit = kv_->lookup({ids, chain});
    const bool fits = kv_->admit(seq, {ids, chain}, hit, 0) && kv_->grow(seq, end);
    hit_ = fits ? static_cast<int>(hit.num_tokens) : -1;
    if (hit_ < 0) return kv_->abandon();
    kv_->settle(seq, {ids, chain, root}, end);
    kv_->commit();
    kv_->processed(seq, end);
  }

  void add(const Command& c) {
    now_ = Micros{c.number("at", now_.count())};
    SeqLimits limits;
    limits.max_new_tokens = c.count("max", 16);
    limits.priority = static_cast<std::int32_t>(c.number("priority", 0));
    limits.prompt_logits = c.text("prompt_logits", "off") == "on";
    if (c.options.contains("deadline")) limits.deadline = Micros{c.number("deadline", 0)};
    refusal_ = scheduler_->add(id(c.words.at(1)), limits, tokens(c.words.at(2)), now_);
  }

  void fork(const Command& c) {
    now_ = Micros{c.number("at", now_.count())};
    const Sequence* parent = scheduler_->find(id(c.words.at(2)));
    ASSERT_NE(parent, nullptr) << "it has ended, or never began";
    SeqLimits limits = parent->limits;
    limits.max_new_tokens = c.count("max", limits.max_new_tokens);
    refusal_ = scheduler_->fork(id(c.words.at(1)), id(c.words.at(2)), limits, now_);
  }

  void plan(const Command& c) {
    now_ = Micros{c.number("at", now_.count())};
    scheduler_->expire(now_);
    note();
    has_plan_ = scheduler_->schedule(plan_, c.count("budget", ~0U));
    if (has_plan_) scheduler_->commit(plan_);
  }
  void run() {
    ASSERT_TRUE(std::exchange(has_plan_, false)) << "there is no plan to run";
    executor_->run(plan_, result_);
    scheduler_->apply(result_);
    note();
  }
  void note() {  // before the next commit forgets those that ended
    for (const auto& [name, seq] : ids_) {
      const Sequence* q = scheduler_->find(seq);
      if (q == nullptr) continue;
      outputs_[name] = q->outputs(), known_[name] = q->known, finish_[name] = q->finish;
      const std::span<const TokenId> known(q->known);
      EXPECT_TRUE(std::ranges::equal(known.subspan(q->prompt_tokens),
                                     test::toy_output(known.first(q->prompt_tokens), q->outputs())))
          << name << " says something else than it would alone";
    }
  }
  void step(const Command& c) {
    plan(c);
    if (has_plan_) run();
  }

  static std::string text_of(const Refusal& r) {
    const char* const kinds[] = {"none", "too_long", "never_fits", "queue_full"};
    return kinds[static_cast<int>(r.why)] + (" " + std::to_string(r.asked)) + " " + std::to_string(r.limit);
  }
  static std::string blocks(std::span<const BlockId> ids) {
    std::string out;
    for (BlockId b : ids) out += (out.empty() ? "" : " ") + std::to_string(b.value);
    return out;
  }
  template <class List, class ToText>
  static std::string join(const List& list, const ToText& to_text) {
    std::string out;
    for (const auto& item : list) out += (out.empty() ? "" : " ") + to_text(item);
    return out;
  }
  std::string queue(SeqState state) {
    std::map<Rank, std::string> by_rank;
    for (const auto& [name, seq] : ids_) {
      const Sequence* q = scheduler_->find(seq);
      if (q != nullptr && q->state == state) by_rank[q->rank] = name;
    }
    return join(by_rank, [](const auto& entry) { return entry.second; });
  }

  void expect(const Command& c) {
    const std::string& what = c.words.at(1);
    std::string is, wanted = c.from(2);
    if (what == "table") {
      wanted = c.from(3);
      is = blocks(kv_->table(id(c.words.at(2)), {c.count("group", 0)}).blocks);
    } else if (what == "free") {
      is = blocks(kv_->free_list());
    } else if (what == "num_free") {
      is = std::to_string(kv_->counters().blocks_free);
    } else if (what == "cached") {
      is = std::to_string(kv_->counters().blocks_cached);
    } else if (what == "hit") {
      is = std::to_string(hit_);
    } else if (what == "rows") {
      is = join(plan_.rows, [&](const StepRow& r) { return names_[r.seq] + ":" + std::to_string(r.num_tokens); });
    } else if (what == "admitted") {
      is = join(plan_.admitted, [&](const Admission& a) { return names_[a.seq]; });
    } else if (what == "preempted") {
      is = join(plan_.preempted, [&](const Preemption& p) { return names_[p.seq]; });
    } else if (what == "swapped") {
      is = join(plan_.preempted, [&](const Preemption& p) { return p.saved_tokens > 0 ? names_[p.seq] : "-"; });
    } else if (what == "restored" || what == "shared") {
      is = join(plan_.admitted, [&](const Admission& a) {
        return names_[a.seq] + ":" + std::to_string(what == "shared" ? a.forked_tokens : a.restored_tokens);
      });
    } else if (what == "copies") {
      is = join(plan_.ops.copies,
                [](const BlockCopy& p) { return std::to_string(p.from.value) + ">" + std::to_string(p.to.value); });
    } else if (what == "usage") {
      const KvUsage u = kv_->usage();
      is = std::to_string(u.reserved) + " " + std::to_string(u.used) + " " + std::to_string(u.external);
    } else if (what == "host_free") {
      is = std::to_string(kv_->counters().host_free);
    } else if (what == "events") {
      KvEvents log;
      kv_->take_events(log);
      is = join(log.events, [](const KvEvent& e) {
        const char* const names[] = {"stored", "removed", "cleared"};
        return std::to_string(e.number) + ":" + names[static_cast<int>(e.kind)] +
               (e.num_blocks > 0 ? ":" + std::to_string(e.num_blocks) : "") +
               (e.group.value > 0 ? "@" + std::to_string(e.group.value) : "");
      });
    } else if (what == "finished") {
      is = join(plan_.finished, [&](SeqId seq) { return names_[seq]; });
    } else if (what == "running") {
      is = queue(SeqState::kRunning);
    } else if (what == "waiting") {
      is = queue(SeqState::kWaiting);
    } else if (what == "refused") {
      is = text_of(std::exchange(refusal_, {}));
      wanted = c.text("why", "") + " " + c.text("asked", "") + " " + c.text("limit", "");
    } else if (what == "owners") {
      wanted = c.words.at(3);
      is = std::to_string(kv_->owners({static_cast<std::uint32_t>(std::stoul(c.words.at(2)))}));
    } else if (what == "counters") {
      const SchedulerCounters& n = scheduler_->counters();
      const std::map<std::string, std::uint64_t> all = {{"steps", n.steps},
                                                        {"computed", n.computed_tokens},
                                                        {"sampled", n.sampled_tokens},
                                                        {"queried", n.queried_tokens},
                                                        {"cached", n.cached_tokens},
                                                        {"forked", n.forked_tokens},
                                                        {"preempted", n.preempted},
                                                        {"swapped", n.swapped},
                                                        {"lost", n.lost_tokens},
                                                        {"restored", n.restored_tokens},
                                                        {"failed_moves", n.failed_moves},
                                                        {"finished", n.finished},
                                                        {"moved_runs", kv_->counters().moved_runs},
                                                        {"copies", kv_->counters().copies},
                                                        {"evictions", kv_->counters().evictions}};
      for (const auto& [key, value] : c.options) {
        ASSERT_TRUE(all.contains(key)) << "no such counter: " << key;
        EXPECT_EQ(std::to_string(all.at(key)), value) << key;
      }
      return;
    } else if (what == "finish") {
      const char* const names[] = {"none", "stop", "length", "abort", "deadline", "error"};
      wanted = c.words.at(3);
      is = names[static_cast<int>(finish_[c.words.at(2)])];
    } else if (what == "outputs") {
      wanted = c.from(3);
      is = std::to_string(outputs_[c.words.at(2)]);
    } else {
      ADD_FAILURE() << "nothing to expect: " << what;
    }
    EXPECT_EQ(is, wanted);
  }

  KvConfig config_;
  std::unique_ptr<KvManager> kv_;
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<test::ToyExecutor> executor_;
  std::map<std::string, SeqId> ids_;
  std::map<SeqId, std::string> names_;
  std::map<std::string, std::uint32_t> outputs_;
  std::map<std::string, std::vector<TokenId>> known_;
  std::map<std::string, Finish> finish_;
  std::map<SeqId, RowEnd> ends_;  // of the next rows
  Micros now_{};
  Refusal refusal_;
  int hit_ = 0;
  bool fail_moves_ = false, has_plan_ = false;
  StepPlan plan_;
  StepResult result_;
};

class ScenarioFile : public testing::TestWithParam<std::string> {};

TEST_P(ScenarioFile, ComesToWhatItSays) {
  std::ifstream file(GetParam());
  ASSERT_TRUE(file) << GetParam();
  Scenario scenario;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    line = line.substr(0, line.find('#'));
    const Command command(line);
    if (command.words.empty()) continue;
    SCOPED_TRACE(GetParam() + ":" + std::to_string(number) + ": " + line);
    scenario.execute(command);
    if (HasFatalFailure()) return;
  }
}

std::vector<std::string> scenario_files() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(OCTAVO_SOURCE_DIR "/tests/scenario")) {
    if (entry.path().extension() == ".scn") out.push_back(entry.path().string());
  }
  std::ranges::sort(out);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Files, ScenarioFile, testing::ValuesIn(scenario_files()),
                         [](const auto& info) { return std::filesystem::path(info.param).stem().string(); });

}  // namespace
}  // namespace octavo
