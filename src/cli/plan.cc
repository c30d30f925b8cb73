// octavo plan: what fits in memory, before anything is bought or loaded.
#include "cli/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <utility>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/model_names.h"
#include "cli/validators.h"

namespace octavo {
namespace {

constexpr std::uint32_t kAny = ~std::uint32_t{0};

/// A packaged name is its file where it is there; whatever is no file is a built-in shape, or refused as one.
Result<ModelShape> read_shape(const PlanOptions& options) {
  const auto path = resolve_model(options.engine.model);
  return read_model_shape(path ? *path : options.engine.model, options.weights_format, options.engine.config.numerics);
}

Result<> run_plan(const PlanOptions& options) {
  OCTAVO_TRY(const PlanCase what, plan_case(options));
  OCTAVO_TRY(const MemoryPlan plan, plan_memory(what.model, what.question));
  if (options.json) {
    std::cout << plan_json(what, plan).dump(2) << std::endl;
  } else if (options.explain) {
    std::cout << explain(what.model, what.question, plan) << std::flush;
  } else {
    print_plan(what, plan);
  }
  if (plan.fits) return Ok{};
  std::fflush(stdout);
  return Error{ErrorCode::kExhausted, fmt::format("does not fit: {}; what would: {}", plan.why_not, plan.nearest), ""};
}

void add_point_options(CLI::App& app, PlanOptions& options) {
  app.add_option_function<std::string>(
      "--memory",
      [&options](const std::string& text) {
        const auto bytes = parse_bytes(text);
        if (!bytes) throw CLI::ValidationError("--memory", bytes.error().message);
        options.memory = *bytes;
      },
      "what there is for everything, like 24GiB (default: what this machine and its cgroup have available)");
  app.add_option("--batch", options.batch, "sequences at once")->check(whole_number(0, kAny));
  app.add_option("--length", options.length, "tokens of each, prompt and output")->check(whole_number(0, kAny));
  app.add_option("--weights-format", options.weights_format,
                 "format of weights that are not there, like Q4_0 (default: the config's, else BF16)");
  app.add_flag("--explain", options.explain, "print the derivation with the numbers filled in");
  app.add_flag("--json", options.json, "print JSON");
}

}  // namespace

Result<PlanCase> plan_case(const PlanOptions& options) {
  PlanCase out;
  OCTAVO_TRY(out.model, read_shape(options));
  out.question.engine = options.engine.config;
  out.question.memory = options.memory;
  out.question.batch = options.batch, out.question.length = options.length;
  return out;
}

Command plan_command(CLI::App& program) {
  auto options = std::make_shared<PlanOptions>();
  options->engine.model.clear();
  CLI::App* app = program.add_subcommand("plan", "Tell what fits in memory; no weights are needed");
  add_engine_options(*app, options->engine, ModelWord::kPositional);
  app->get_option("--model")->required()->description(
      "a GGUF file, a model folder, a config.json, or a built-in shape like llama-2-7b");
  add_point_options(*app, *options);
  const CLI::Option* seqs = app->get_option("--max-num-seqs");
  const CLI::Option* fraction = app->get_option("--kv-fraction");
  return {app, [options, seqs, fraction] {
            EngineConfig& config = options->engine.config;
            // What fits is the question, so KV may take all that is left, by as many sequences as are asked for.
            if (fraction->count() == 0) config.kv_fraction = 1;
            if (seqs->count() == 0)
              config.max_num_seqs = std::clamp(options->batch.value_or(0), config.max_num_seqs, 4096U);
            return run_plan(*options);
          }};
}

}  // namespace octavo
