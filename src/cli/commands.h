// The subcommands. Each adds itself to the program and says what to do when it was chosen; one file each.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>

#include "octavo/result.h"

namespace octavo {

struct Command {
  CLI::App* app = nullptr;
  std::function<Result<>()> run;
};

Command generate_command(CLI::App& program);
Command chat_command(CLI::App& program);
Command serve_command(CLI::App& program);
Command inspect_command(CLI::App& program);
Command pack_command(CLI::App& program);
Command tokenize_command(CLI::App& program);
Command template_command(CLI::App& program);
Command score_command(CLI::App& program);
Command bench_command(CLI::App& program);
Command bench_kernels_command(CLI::App& bench);  // subcommands of it
Command bench_kv_command(CLI::App& bench);
Command bench_serve_command(CLI::App& bench);
Command plan_command(CLI::App& program);
Command bench_kv_cache_command(CLI::App& bench);
Command bench_batching_command(CLI::App& bench);
Command bench_memory_command(CLI::App& bench);
Command bench_prefix_command(CLI::App& bench);
Command bench_preemption_command(CLI::App& bench);
Command bench_attention_command(CLI::App& bench);
Command bench_frontier_command(CLI::App& bench);
Command bench_all_command(CLI::App& bench);
Command probe_command(CLI::App& program);
Command trace_command(CLI::App& program);

}  // namespace octavo
