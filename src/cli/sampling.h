// Sampling parameters as flags and as fields of a JSON line.
#pragma once
#include <CLI/CLI.hpp>

#include "cli/jsonl.h"
#include "octavo/request.h"

namespace octavo {

/// What `params` holds now are the defaults. `params` must outlive the parse.
void add_sampling_options(CLI::App& app, SamplingParams& params);

/// Fields that are absent leave `params` as it is; wrong ones are told by `fields.error()`.
void read_sampling(Fields& fields, SamplingParams& params);

}  // namespace octavo
