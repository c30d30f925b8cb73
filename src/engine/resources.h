// Everything one engine owns, built once by load and in the order that it depends on itself.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "engine/load_weights.h"
#include "engine/local_executor.h"
#include "engine/measure_steps.h"
#include "engine/sampling_table.h"
#include "kernels/select.h"
#include "kv/kv_host_store.h"
#include "kv/kv_manager.h"
#include "kv/kv_store.h"
#include "model/checkpoint.h"
#include "model/forward.h"
#include "model/spec.h"
#include "model/weights.h"
#include "octavo/engine.h"
#include "sched/pacer.h"
#include "sched/policy.h"
#include "sched/scheduler.h"

namespace octavo {

/// Bytes that parts of an engine took on the heap when they were made.
struct HeapUse {
  std::uint64_t tokenizer = 0, sampling = 0, bookkeeping = 0;
};

struct EngineResources {
  EngineReport report;
  HeapUse heap;
  std::unique_ptr<Tokenizer> tokenizer;       // nullptr: the folder has none
  std::optional<ChatTemplate> chat_template;  // none: a base model
  ModelSpec spec;
  KernelChoice kernels;
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Weights> weights;
  std::unique_ptr<PackCheck> pack_check;  // to be run beside the engine; nullptr: the weights were made just now
  std::unique_ptr<KvStore> store;
  std::unique_ptr<KvHostStore> host;  // nullptr: nothing is swapped
  ForwardLimits limits;               // what the model's buffers hold
  std::unique_ptr<Model> model;
  std::unique_ptr<KvManager> kv;
  std::unique_ptr<Policy> policy;
  std::unique_ptr<Scheduler> scheduler;
  std::unique_ptr<Pacer> pacer;
  StepMeasurement measured;  // what the pacer started from
  std::string step_memo;     // where to keep what it has learned; empty: nowhere
  std::unique_ptr<SamplingTable> sampling;
  std::unique_ptr<LocalExecutor> executor;
};

/// Opens, checks, plans memory, packs. Every refusal names the flag or file, the value and the limit.
[[nodiscard]] Result<std::unique_ptr<EngineResources>> load_resources(const EngineConfig& config,
                                                                      const Progress& progress);

/// The same from a checkpoint that is open already; without tokenizer and chat template.
[[nodiscard]] Result<std::unique_ptr<EngineResources>> build_resources(const EngineConfig& config,
                                                                       const Checkpoint& checkpoint,
                                                                       std::vector<TokenId> end_of_generation,
                                                                       const Progress& progress);

}  // namespace octavo
