// octavo generate: text from a prompt, or from many prompts as one batch.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/chat_prompt.h"
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/jsonl.h"
#include "cli/requests.h"
#include "cli/sampling.h"
#include "cli/validators.h"

namespace octavo {
namespace {

struct GenerateOptions {
  EngineOptions engine;
  SamplingParams params;
  std::vector<std::string> words;  // [MODEL] PROMPT
  std::string prompts_file;
  bool chat = false, json = false;
};

Result<std::vector<TokenId>> encode(const Engine& engine, const std::string& text, bool chat) {
  if (chat) return chat_prompt(engine, {{"user", text}});
  OCTAVO_TRY(const Tokenizer* tokenizer, tokenizer_of(engine));
  auto ids = tokenizer->encode(text, {});
  if (ids.empty()) return Error{ErrorCode::kInvalidArgument, "the prompt is empty: give at least one token", "prompt"};
  return ids;
}

/// One line of --prompts: {"prompt"} or {"ids"}, and parameters of its own.
Result<Request> read_request(const std::string& line, const Engine& engine, const GenerateOptions& options) {
  OCTAVO_TRY(const Json object, parse_object(line));
  Fields fields(object);
  Request request;
  request.params = options.params;
  std::string prompt;
  const bool has_text = fields.read("prompt", prompt), has_ids = fields.read("ids", request.prompt);
  fields.read("priority", request.priority);
  fields.read("cache_salt", request.cache_salt);
  std::optional<std::uint32_t> deadline_ms;
  if (fields.read("deadline_ms", deadline_ms)) request.deadline = std::chrono::milliseconds(*deadline_ms);
  read_sampling(fields, request.params);
  OCTAVO_CHECK_OK(fields.error());
  if (has_text == has_ids) {
    return Error{ErrorCode::kInvalidArgument, "expected one of the fields 'prompt' and 'ids'", "prompt"};
  }
  if (has_text) {
    OCTAVO_TRY(request.prompt, encode(engine, prompt, options.chat));
  }
  return request;
}

void print_outcome(std::size_t index, const Outcome& outcome) {
  if (outcome.error) {
    std::cout << dump({{"index", index}, {"error", outcome.error->message}}) << '\n';
    return;
  }
  for (const Completion& completion : outcome.choices) {
    Json line = {{"index", index}};
    if (outcome.choices.size() > 1) line["choice"] = completion.choice;
    line.update(to_json(completion));
    std::cout << dump(line) << '\n';
  }
}

/// JSON lines in, JSON lines out, in order; a line that cannot be served says so and the others go on.
Result<> generate_lines(Engine& engine, const GenerateOptions& options, std::istream& in) {
  std::vector<Outcome> outcomes;
  std::vector<Request> requests;
  std::vector<std::size_t> places;  // of each request among the lines
  for (std::string line; std::getline(in, line);) {
    auto request = read_request(line, engine, options);
    Outcome& outcome = outcomes.emplace_back();
    if (!request) {
      outcome.error = request.error();
      continue;
    }
    places.push_back(outcomes.size() - 1);
    requests.push_back(*std::move(request));
  }
  auto ran = run_requests(engine, std::move(requests), "generating");
  for (std::size_t i = 0; i < ran.size(); ++i) outcomes[places[i]] = std::move(ran[i]);
  for (std::size_t i = 0; i < outcomes.size(); ++i) print_outcome(i, outcomes[i]);
  std::cout.flush();
  return Ok{};
}

Result<> generate_one(Engine& engine, const GenerateOptions& options, const std::string& prompt) {
  Request request;
  request.params = options.params;
  OCTAVO_TRY(request.prompt, encode(engine, prompt, options.chat));
  const bool stream = !options.json && request.params.n == 1;
  const auto outcomes = run_requests(engine, {std::move(request)}, [stream](std::size_t, const OutputEvent& event) {
    if (stream) std::cout << event.text << std::flush;
  });
  const Outcome& outcome = outcomes.front();
  if (outcome.error) return *outcome.error;
  if (stream) {
    std::cout << '\n';
  } else if (options.json) {
    print_outcome(0, outcome);
  } else {
    for (const Completion& completion : outcome.choices) {
      std::cout << fmt::format("--- choice {}\n{}\n", completion.choice, completion.text);
    }
  }
  std::cout.flush();
  return Ok{};
}

Result<> generate(GenerateOptions& options) {
  // A word alone is the prompt, but beside --prompts it can only be the model.
  const bool lines = !options.prompts_file.empty();
  if (options.words.size() == (lines ? 1 : 2)) options.engine.model = options.words.front();
  if (lines && options.words.size() == 2) {
    return Error{ErrorCode::kInvalidArgument, "give a prompt or --prompts FILE, not both", "--prompts"};
  }
  std::ifstream file;
  if (!options.prompts_file.empty() && options.prompts_file != "-") {
    file.open(options.prompts_file);
    if (!file || file.peek() == std::ifstream::traits_type::eof()) {  // a folder opens, but has nothing to read
      return Error{ErrorCode::kNotFound, "--prompts: cannot read a line of " + options.prompts_file, "--prompts"};
    }
  }
  std::string prompt;
  if (!options.words.empty()) {
    prompt = options.words.back();
  } else if (options.prompts_file.empty()) {
    if (isatty(STDIN_FILENO) == 1) fmt::print(stderr, "Prompt, ended by Ctrl-D:\n");
    prompt.assign(std::istreambuf_iterator<char>(std::cin), {});
  }
  OCTAVO_TRY(const std::unique_ptr<Engine> engine, load_engine(options.engine));
  if (!options.prompts_file.empty()) {
    return generate_lines(*engine, options, options.prompts_file == "-" ? std::cin : file);
  }
  return generate_one(*engine, options, prompt);
}

}  // namespace

Command generate_command(CLI::App& program) {
  auto options = std::make_shared<GenerateOptions>();
  options->params.max_tokens = 64;
  options->params.temperature = 0;
  CLI::App* app = program.add_subcommand("generate", "Continue a prompt, or many as one batch");
  app->add_option("PROMPT", options->words, "the prompt (default: read from stdin); a MODEL may stand before it")
      ->type_name("")
      ->expected(0, 2);
  app->add_option("--prompts", options->prompts_file,
                  R"(JSON lines {"prompt" or "ids", sampling parameters}, run as one batch; - is stdin)");
  app->add_flag("--chat", options->chat, "send the prompt as a user message through the chat template");
  app->add_flag("--json", options->json, "print JSON: text, tokens, finish_reason, logprobs, usage");
  add_sampling_options(*app, options->params);
  app->add_option("--n", options->params.n, "choices per prompt")->check(whole_number(1, 128))->group("Sampling");
  app->add_option("--logprobs", options->params.logprobs,
                  "log-probabilities of this many likeliest tokens, with --json")
      ->check(whole_number())
      ->group("Sampling");
  add_engine_options(*app, options->engine, ModelWord::kFlagOnly);
  return {app, [options] { return generate(*options); }};
}

}  // namespace octavo
