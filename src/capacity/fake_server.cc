#include "capacity/fake_server.h"

#include "base/check.h"
#include "capacity/random.h"

namespace octavo {
namespace {

constexpr std::uint64_t kVocabulary = 128'000;
constexpr Micros kStep{10'000};

TokenId token_of(std::uint64_t random) { return {static_cast<std::int32_t>(random % kVocabulary)}; }

}  // namespace

void FakeServer::add(std::uint32_t prompt_tokens, std::uint32_t output_tokens) {
  const SeqId id{++last_seq_};
  Random random(id.value);
  prompt_.clear();
  for (std::uint32_t i = 0; i < prompt_tokens; ++i) prompt_.push_back(token_of(random.next()));
  SeqLimits limits;
  limits.max_new_tokens = output_tokens;
  OCTAVO_CHECK(scheduler_.add(id, limits, prompt_, now_).why == Refusal::Why::kNone, "the pool holds every request");
}

bool FakeServer::plan() {
  now_ += kStep;
  if (!scheduler_.schedule(plan_)) return false;
  scheduler_.commit(plan_);
  return true;
}

void FakeServer::compute() {
  result_.clear();
  result_.step = plan_.step;
  for (const StepRow& row : plan_.rows) {
    result_.rows.push_back(
        {row.seq, row.end(), static_cast<std::uint32_t>(result_.tokens.size()), row.num_samples, RowEnd::kGoesOn});
    if (row.num_samples > 0) result_.tokens.push_back(token_of(row.seq.value * 31 + row.end().value));
  }
}

bool FakeServer::step() {
  if (!plan()) return false;
  compute();
  apply();
  return true;
}

}  // namespace octavo
