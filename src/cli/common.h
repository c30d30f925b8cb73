// Options that every command which loads an engine shares.
#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "octavo/config.h"
#include "octavo/engine.h"
#include "octavo/result.h"

namespace octavo {

struct EngineOptions {
  std::string model = "smollm2";
  EngineConfig config;  // all but its `model`
};

/// MODEL as a word of its own, too, or only after --model where the first word is something else.
enum class ModelWord : std::uint8_t { kPositional, kFlagOnly };

/// `options` must outlive the parse.
void add_engine_options(CLI::App& app, EngineOptions& options, ModelWord word);

/// --numerics, for commands that pack or load.
void add_numerics_option(CLI::App& app, Numerics& numerics);

/// Resolves the model's name and loads it, with progress on stderr.
[[nodiscard]] Result<std::unique_ptr<Engine>> load_engine(const EngineOptions& options);

/// The model's tokenizer, or an error that names the model.
[[nodiscard]] Result<const Tokenizer*> tokenizer_of(const Engine& engine);

}  // namespace octavo
