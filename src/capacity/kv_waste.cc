#include "capacity/kv_waste.h"

#include "capacity/fake_server.h"

namespace octavo {

void WasteMeter::add(const KvUsage& usage, std::uint32_t running) {
  ++steps_;
  reserved_ += usage.reserved, used_ += usage.used, external_ += usage.external, running_ += running;
}

void WasteMeter::report(KvWasteRow& row) const {
  row.steps = steps_;
  if (steps_ == 0) return;
  const auto mean = [this](std::uint64_t sum) { return static_cast<double>(sum) / static_cast<double>(steps_); };
  row.reserved_bytes = mean(reserved_) * bytes_per_place_;
  row.used_bytes = mean(used_) * bytes_per_place_;
  row.external_bytes = mean(external_) * bytes_per_place_;
  row.running = mean(running_);
}

KvWasteRow measure_waste(const WasteRun& run, std::span<const PlannedRequest> requests) {
  FakeServer server(run.scheduler, run.kv);
  for (const PlannedRequest& r : requests) server.add(r.prompt_tokens, r.output_tokens);

  WasteMeter meter(run.page_bytes, run.kv.block_tokens);
  const Scheduler& scheduler = server.scheduler();
  while (server.step()) {
    const bool loaded = scheduler.counters().finished > 0 && scheduler.num_waiting() > 0;
    if (loaded) meter.add(server.kv().usage(), scheduler.num_running());
  }

  KvWasteRow row;
  row.memory = run.kv.memory;
  row.block_tokens = run.kv.block_tokens;
  row.pool_bytes = (run.kv.num_blocks - 1) * run.page_bytes;
  row.requests = scheduler.counters().finished;
  row.moves = server.kv().counters().moved_runs;
  row.preemptions = scheduler.counters().preempted;
  meter.report(row);
  return row;
}

}  // namespace octavo
