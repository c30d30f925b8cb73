// octavo template: renders chat templates from JSON lines.
#include <chrono>
#include <iostream>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/jsonl.h"
#include "octavo/chat_template.h"

namespace octavo {
namespace {

/// {"template", "context", optional "now"} -> {"output"}.
Result<Json> answer(const Json& line) {
  Fields fields(line);
  std::string source, now;
  const bool has_source = fields.read("template", source);
  fields.read("now", now);
  OCTAVO_CHECK_OK(fields.error());
  if (!has_source) return Error{ErrorCode::kInvalidArgument, "the field 'template' is missing", "template"};
  const auto context = line.find("context");
  if (context == line.end() || !context->is_object()) {
    return Error{ErrorCode::kInvalidArgument, "the field 'context' must be an object", "context"};
  }
  std::chrono::local_seconds time = local_now();
  if (!now.empty()) {
    OCTAVO_TRY(time, parse_local_time(now));
  }
  OCTAVO_TRY(const ChatTemplate chat_template, ChatTemplate::parse(source));
  OCTAVO_TRY(const std::string output, chat_template.render(dump(*context), time));
  return Json{{"output", output}};
}

Result<> render(bool jsonl) {
  if (!jsonl) {
    return Error{ErrorCode::kInvalidArgument,
                 R"(template reads JSON lines {"template", "context", "now"} from stdin: run it with --jsonl)",
                 "--jsonl"};
  }
  answer_lines(std::cin, std::cout, answer);
  return Ok{};
}

}  // namespace

Command template_command(CLI::App& program) {
  auto jsonl = std::make_shared<bool>(false);
  CLI::App* app = program.add_subcommand("template", "Render chat templates, JSON lines in and out");
  app->add_flag("--jsonl", *jsonl, R"({"template", "context", optional "now": "2026-01-15T12:34:56"} to {"output"})");
  return {app, [jsonl] { return render(*jsonl); }};
}

}  // namespace octavo
