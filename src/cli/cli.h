// The command line: one program, one subcommand for each thing it does.
#pragma once

namespace octavo {

/// Parses, runs one subcommand, and returns the exit code: 0 done, 1 failed while running, 2 used wrongly.
/// An error is one line on stderr.
int run_cli(int argc, char** argv);

}  // namespace octavo
