// The server's own scheduler, KV manager and pacer over a virtual clock: requests come in as a workload says, steps
// take what their price says, nothing is computed.
//
// A step's tokens are there when its run is over; the next step begins after its overhead. Who arrives meanwhile is
// seen at the next step, as by the engine.
// Threads: one. Deterministic.
#pragma once
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "capacity/step_price.h"
#include "capacity/tally.h"
#include "kv/kv_manager.h"
#include "octavo/simulate.h"
#include "sched/pacer.h"
#include "sched/policy.h"
#include "sched/scheduler.h"
#include "sched/serving_setup.h"

namespace octavo {

struct Simulation {
  const EngineConfig& engine;
  const ServingFacts& facts;
  const StepPrice& price;
  const ServiceGoal& goal;
  double token_place_bytes = 0;  // of one token in one group: turns KvUsage into bytes
};

class Simulator {
 public:
  explicit Simulator(const Simulation& what);

  /// All of it, from the first arrival until the last answer. Call once.
  void run(const Workload& workload);
  /// All fields but the memory plan's and the budget's.
  [[nodiscard]] SimulateReport report() const;

 private:
  struct Answer {
    std::uint32_t request = 0;                // of the workload
    double arrival = 0, first = 0, last = 0;  // ns
    std::uint64_t admitted_step = 0, seen_step = 0;
    bool preempted = false;
  };
  void take_arrivals(const Workload& workload);
  void submit(const Workload& workload, std::uint32_t request, double arrival);
  bool step();
  void compute(const PricedStep& price);
  void close_ended();
  void gauge(double duration);
  void note(double used, double reserved);
  [[nodiscard]] Micros now() const { return Micros(static_cast<std::int64_t>(now_ / 1e3)); }

  Simulation what_;
  std::unique_ptr<Policy> policy_;
  KvManager kv_;
  Scheduler scheduler_;
  Pacer pacer_;
  StepPlan plan_;
  StepResult result_;
  double now_ = 0, started_ = 0, ended_ = 0;  // ns of virtual time
  std::uint64_t steps_ = 0;
  std::uint64_t next_ = 0;                          // request of the workload that has not arrived
  std::unordered_map<std::uint64_t, Answer> open_;  // by SeqId
  std::uint64_t last_seq_ = 0;
  std::vector<TokenId> prompt_;

  Tally ttft_, tpot_, itl_, e2e_, queue_;
  Tally live_, running_, used_, reserved_;
  std::vector<Moment> timeline_;
  std::uint64_t note_every_ = 1;  // steps
  PricedStep spent_;
  double idle_ = 0, waited_for_memory_ = 0, waited_for_seats_ = 0;
  double free_while_waiting_ = 0, waiting_ns_ = 0, reserved_ns_ = 0, unused_ns_ = 0;
  std::uint64_t never_fit_ = 0, turned_away_ = 0, finished_ = 0, good_ = 0, queued_ = 0, preempted_ = 0;
  std::uint64_t prompt_tokens_ = 0, output_tokens_ = 0;
};

}  // namespace octavo
