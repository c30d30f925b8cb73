// octavo tokenize: text to token ids and back, one text or a stream of JSON lines.
#include <fmt/format.h>

#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/jsonl.h"
#include "cli/model_names.h"
#include "octavo/tokenizer.h"

namespace octavo {
namespace {

struct TokenizeOptions {
  std::string model;
  std::optional<std::string> text;
  bool jsonl = false, no_special = false, plain = false;
};

/// {"text", "add_special", "parse_special"} -> {"ids"}; {"ids", "skip_special"} -> {"text"}.
Result<Json> answer(const Tokenizer& tokenizer, const Json& line) {
  Fields fields(line);
  std::string text;
  std::vector<TokenId> ids;
  EncodeOptions encode;
  bool skip_special = false;
  const bool has_text = fields.read("text", text), has_ids = fields.read("ids", ids);
  fields.read("add_special", encode.add_special);
  fields.read("parse_special", encode.parse_special);
  fields.read("skip_special", skip_special);
  OCTAVO_CHECK_OK(fields.error());
  if (has_text == has_ids) {
    return Error{ErrorCode::kInvalidArgument, "expected one of the fields 'text' and 'ids'", "text"};
  }
  if (has_ids) {
    OCTAVO_TRY(const std::string decoded, tokenizer.decode(ids, skip_special));
    return Json{{"text", decoded}};
  }
  Json out = Json::array();
  for (const TokenId id : tokenizer.encode(text, encode)) out.push_back(id.value);
  return Json{{"ids", out}};
}

void print_tokens(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  for (const TokenId id : ids) fmt::print("{:>7}  {}\n", id.value, dump(tokenizer.token_bytes(id)));
  fmt::print("{} tokens\n", ids.size());
}

Result<> tokenize(const TokenizeOptions& options) {
  OCTAVO_TRY(const std::string path, resolve_model(options.model));
  OCTAVO_TRY(const std::unique_ptr<Tokenizer> tokenizer, load_tokenizer(path));
  if (options.jsonl) {
    answer_lines(std::cin, std::cout, [&](const Json& line) { return answer(*tokenizer, line); });
    return Ok{};
  }
  const std::string text = options.text ? *options.text : std::string(std::istreambuf_iterator<char>(std::cin), {});
  print_tokens(*tokenizer,
               tokenizer->encode(text, {.add_special = !options.no_special, .parse_special = !options.plain}));
  return Ok{};
}

}  // namespace

Command tokenize_command(CLI::App& program) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* app = program.add_subcommand("tokenize", "Turn text into token ids and back");
  app->add_option("MODEL", options->model, "smollm2, gemma3-270m, a GGUF file (a vocabulary-only one, too) or a folder")
      ->required();
  app->add_option("TEXT", options->text, "the text (default: read from stdin)");
  auto* jsonl =
      app->add_flag("--jsonl", options->jsonl,
                    R"(JSON lines: {"text", "add_special", "parse_special"} to {"ids"}, {"ids"} to {"text"})");
  app->add_flag("--no-special", options->no_special, "add no BOS or EOS")->excludes(jsonl);
  app->add_flag("--plain", options->plain, "spelled-out control tokens stay plain text")->excludes(jsonl);
  return {app, [options] { return tokenize(*options); }};
}

}  // namespace octavo
