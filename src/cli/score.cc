// octavo score: log-probabilities of given tokens, as JSON lines, or the perplexity of a text file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file_map.h"
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/jsonl.h"
#include "cli/requests.h"

namespace octavo {
namespace {

struct ScoreOptions {
  EngineOptions engine;
  std::string file;
  std::uint32_t window = 0;
  bool jsonl = false;
};

/// A request that generates nothing (or one token, whose alternatives are what follows the prompt).
Request score_request(std::vector<TokenId> ids, std::uint32_t top, bool next) {
  Request request;
  request.prompt = std::move(ids);
  request.params.temperature = 0;
  request.params.ignore_eos = true;
  request.params.prompt_logprobs = top;
  request.params.max_tokens = next ? 1 : 0;
  if (next) request.params.logprobs = top;
  return request;
}

/// {"text" or "ids", "top", "next"} -> {"ids", "logprobs", "top"?, "next"?}.
Result<Json> answer(Engine& engine, const Json& line) {
  Fields fields(line);
  std::string text;
  std::vector<TokenId> ids;
  EncodeOptions encode;
  std::uint32_t top = 0;
  bool next = false;
  const bool has_text = fields.read("text", text), has_ids = fields.read("ids", ids);
  fields.read("add_special", encode.add_special);
  fields.read("parse_special", encode.parse_special);
  fields.read("top", top);
  fields.read("next", next);
  OCTAVO_CHECK_OK(fields.error());
  if (has_text == has_ids) {
    return Error{ErrorCode::kInvalidArgument, "expected one of the fields 'text' and 'ids'", "text"};
  }
  if (has_text) {
    OCTAVO_TRY(const Tokenizer* tokenizer, tokenizer_of(engine));
    ids = tokenizer->encode(text, encode);
  }
  if (ids.empty()) return Error{ErrorCode::kInvalidArgument, "nothing to score: the text has no tokens", "text"};

  const auto outcomes = run_requests(engine, {score_request(std::move(ids), top, next)}, OnEvent{});
  if (outcomes.front().error) return *outcomes.front().error;
  const Completion& scored = outcomes.front().choices.front();
  Json out = {{"ids", Json::array()}, {"logprobs", Json::array()}};
  if (top > 0) out["top"] = Json::array();
  for (const TokenLogprob& token : scored.prompt_logprobs) {
    out["ids"].push_back(token.id.value);
    out["logprobs"].push_back(token.logprob ? Json(*token.logprob) : Json(nullptr));
    if (top > 0) out["top"].push_back(to_json(token.top));
  }
  if (next) out["next"] = scored.logprobs.empty() ? Json::array() : to_json(scored.logprobs.front().top);
  return out;
}

/// Windows of at most `size` tokens, each begun by BOS where the model wants one.
std::vector<std::vector<TokenId>> windows(const Tokenizer& tokenizer, std::string_view text, std::size_t size) {
  const std::vector<TokenId> ids = tokenizer.encode(text, {.add_special = false, .parse_special = false});
  const std::vector<TokenId> special = tokenizer.encode("", {.add_special = true});
  const bool begins_with_bos = !special.empty() && special.front() == tokenizer.bos();
  std::vector<std::vector<TokenId>> out;
  for (std::size_t begin = 0; begin < ids.size();) {
    std::vector<TokenId>& window = out.emplace_back();
    if (begins_with_bos) window.push_back(special.front());
    const std::size_t end = std::min(ids.size(), begin + size - window.size());
    window.insert(window.end(), ids.begin() + static_cast<std::ptrdiff_t>(begin),
                  ids.begin() + static_cast<std::ptrdiff_t>(end));
    begin = end;
  }
  return out;
}

Result<> score_file(Engine& engine, const ScoreOptions& options) {
  OCTAVO_TRY(const Tokenizer* tokenizer, tokenizer_of(engine));
  OCTAVO_TRY(const FileMap file, FileMap::open(options.file));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  const std::uint32_t longest = engine.report().max_model_len;
  if (options.window > longest) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--window {} is longer than the longest request, {} tokens", options.window, longest),
                 "--window"};
  }
  const std::uint32_t size = options.window == 0 ? longest - 1 : options.window;
  std::vector<Request> requests;
  for (auto& window : windows(*tokenizer, text, size)) requests.push_back(score_request(std::move(window), 0, false));
  const std::size_t num_windows = requests.size();

  double nll = 0;
  std::uint64_t tokens = 0;
  for (const Outcome& outcome : run_requests(engine, std::move(requests), "windows scored")) {
    if (outcome.error) return *outcome.error;
    for (const TokenLogprob& token : outcome.choices.front().prompt_logprobs) {
      if (!token.logprob) continue;
      nll -= *token.logprob;
      ++tokens;
    }
  }
  if (tokens == 0) return Error{ErrorCode::kInvalidArgument, options.file + " has no token to score", "FILE"};
  const double mean = nll / static_cast<double>(tokens);
  fmt::print("tokens      {} scored, in {} windows of up to {}\n", tokens, num_windows, size);
  fmt::print("NLL         {:.4f} per token, {:.2f} in all\n", mean, nll);
  fmt::print("perplexity  {:.4f}\n", std::exp(mean));
  return Ok{};
}

Result<> score(ScoreOptions& options) {
  if (options.jsonl != options.file.empty()) {
    return Error{ErrorCode::kInvalidArgument, "give a text FILE, or --jsonl and lines on stdin", "--jsonl"};
  }
  OCTAVO_TRY(const std::unique_ptr<Engine> engine, load_engine(options.engine));
  if (!options.jsonl) return score_file(*engine, options);
  answer_lines(std::cin, std::cout, [&](const Json& line) { return answer(*engine, line); });
  return Ok{};
}

}  // namespace

Command score_command(CLI::App& program) {
  auto options = std::make_shared<ScoreOptions>();
  CLI::App* app = program.add_subcommand("score", "Log-probabilities of given tokens; perplexity of a text file");
  add_engine_options(*app, options->engine, ModelWord::kPositional);
  app->add_option("FILE", options->file, "text file to score");
  app->add_flag("--jsonl", options->jsonl,
                R"(JSON lines: {"text" or "ids", "top": k, "next": true} to {"ids", "logprobs", "top", "next"})");
  app->add_option("--window", options->window, "tokens of a window of a FILE (default: the longest request)")
      ->check(CLI::Range(2U, 1U << 24U));
  return {app, [options] { return score(*options); }};
}

}  // namespace octavo
