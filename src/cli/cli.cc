#include "cli/cli.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace octavo {
namespace {

constexpr int kFailed = 1, kUsage = 2;

int fail(const std::string& who, std::string message, int code) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  fmt::print(stderr, "{}: {}\n", who, message);
  return code;
}

int run_command(const Command& command) {
  const std::string who = "octavo " + command.app->get_name();
  try {
    const Result<> done = command.run();
    if (done) {
      std::cout.flush();
      const bool written = std::cout.good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
      return written ? 0 : fail(who, "cannot write the output: is the disk full, or the reader gone?", kFailed);
    }
    const Error& error = done.error();
    return fail(who, error.message, error.code == ErrorCode::kInvalidArgument ? kUsage : kFailed);
  } catch (const std::bad_alloc&) {
    return fail(who, "out of memory", kFailed);
  } catch (const std::exception& error) {
    return fail(who, error.what(), kFailed);
  }
}

}  // namespace

int run_cli(int argc, char** argv) {
  CLI::App program("Octavo serves language models from GGUF files on CPUs, exactly and repeatably.", "octavo");
  program.set_version_flag("-V,--version", "octavo " OCTAVO_VERSION);
  program.require_subcommand(1);
  program.get_formatter()->column_width(34);
  const std::vector<Command> commands = {
      generate_command(program), chat_command(program),     serve_command(program), inspect_command(program),
      tokenize_command(program), template_command(program), score_command(program), bench_command(program),
      probe_command(program),    trace_command(program),    pack_command(program),  plan_command(program),
  };
  for (const Command& command : commands) command.app->set_version_flag("-V,--version", "octavo " OCTAVO_VERSION);

  const auto is_command = [&](const std::string& word) {
    return std::ranges::any_of(commands, [&](const Command& c) { return c.app->get_name() == word; });
  };
  if (argc > 1 && argv[1][0] != '-' && !is_command(argv[1])) {
    return fail("octavo", fmt::format("'{}' is not a command (see octavo --help)", argv[1]), kUsage);
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    return program.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    const auto chosen = program.get_subcommands();
    const std::string who = chosen.empty() ? "octavo" : "octavo " + chosen.front()->get_name();
    return fail(who, fmt::format("{} (see {} --help)", error.what(), who), kUsage);
  }
  const auto chosen = std::find_if(commands.begin(), commands.end(), [](const Command& c) { return c.app->parsed(); });
  return run_command(*chosen);
}

}  // namespace octavo
