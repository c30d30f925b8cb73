// octavo plan: what fits in memory, before anything is bought or loaded.
#include "cli/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/model_names.h"
#include "cli/plan_check.h"
#include "cli/plan_html.h"
#include "cli/validators.h"

namespace octavo {
namespace {

constexpr std::uint32_t kAny = ~std::uint32_t{0};

/// A packaged name is its file where it is there; whatever is no file is a built-in shape, or refused as one.
Result<ModelShape> read_shape(const PlanOptions& options) {
  const auto path = resolve_model(options.engine.model);
  return read_model_shape(path ? *path : options.engine.model, options.weights_format, options.engine.config.numerics);
}

/// What needs a load to be asked about.
Result<> check_load_options(const PlanOptions& options) {
  if (!options.load.workload.empty()) return Ok{};
  for (const auto& [flag, given] : {std::pair{"--check", options.check},
                                    {"--what-if", options.load.what_if},
                                    {"--search-rate", options.load.search},
                                    {"--goal", !options.load.goal.empty()},
                                    {"--machine", !options.load.machine.empty()}}) {
    if (!given) continue;
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} is about a load: add --workload", flag), flag};
  }
  return Ok{};
}

Result<> run_plan(const PlanOptions& options) {
  OCTAVO_CHECK_OK(check_load_options(options));
  OCTAVO_TRY(const PlanCase what, plan_case(options));
  OCTAVO_TRY(const MemoryPlan plan, plan_memory(what.model, what.question));
  std::optional<LoadPlan> load;
  std::optional<CheckReport> check;
  if (plan.fits && options.check) {
    OCTAVO_TRY(check, check_plan(what.model, options.engine, plan.memory_bytes, plan.rss_bytes, options.load));
  } else if (plan.fits && !options.load.workload.empty()) {
    OCTAVO_TRY(load, plan_load(what.model, options.engine.config, plan.memory_bytes, options.load));
  }
  if (options.json) {
    Json json = plan_json(what, plan);
    if (load) json["load"] = to_json(*load);
    if (check) json["check"] = to_json(*check);
    std::cout << json.dump(2) << std::endl;
  } else if (options.explain) {
    std::cout << explain(what.model, what.question, plan) << std::flush;
  } else {
    print_plan(what, plan);
  }
  if (!options.json && load) print_load(*load);
  if (!options.json && check) print_check(*check);
  if (!options.html.empty()) {
    OCTAVO_CHECK_OK(write_plan_page(options.html, what.model, what.question, plan, load ? &*load : nullptr,
                                    check ? &*check : nullptr));
  }
  if (load && load->report.never_fit > 0) {
    std::fflush(stdout);
    return Error{ErrorCode::kExhausted,
                 fmt::format("{} of {} requests never fit: the longest request is {} tokens{}", load->report.never_fit,
                             load->workload.requests.size(), plan.longest_request,
                             plan.longest_request_reason.empty() ? "" : " (" + plan.longest_request_reason + ")"),
                 ""};
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
  add_load_options(app, options.load);
  app.add_flag("--check", options.check,
               "run the load for real on the model, at three rates, beside what was predicted (docs/simulator.md)");
  app.add_option("--html", options.html, "write all of it to this file as one page, with plots");
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
            if (fraction->count() == 0 && options->load.workload.empty()) config.kv_fraction = 1;
            if (seqs->count() == 0)
              config.max_num_seqs = std::clamp(options->batch.value_or(0), config.max_num_seqs, 4096U);
            return run_plan(*options);
          }};
}

}  // namespace octavo
