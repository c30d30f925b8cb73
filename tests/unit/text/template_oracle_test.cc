// Real chat templates and small snippets, against what transformers and jinja2 render.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "octavo/chat_template.h"

namespace octavo {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

fs::path template_oracles() {
  const char* named = std::getenv("OCTAVO_ORACLES");
  return (named != nullptr ? fs::path(named) : fs::path(OCTAVO_SOURCE_DIR) / "../shared/oracles") / "templates";
}

Result<std::string> render(const std::string& source, const ordered_json& context, const std::string& now) {
  auto parsed = ChatTemplate::parse(source);
  if (!parsed) return std::move(parsed).error();
  return parsed->render(context.dump(), parse_local_time(now).value());
}

/// An error of the template's own raise_exception has its message; of any other only the failure counts.
void expect_outcome(const ordered_json& expected, const Result<std::string>& got, const std::string& what) {
  if (expected.contains("output")) {
    ASSERT_TRUE(got.ok()) << what << ": " << got.error().message;
    EXPECT_EQ(*got, expected["output"].get<std::string>()) << what;
    return;
  }
  ASSERT_FALSE(got.ok()) << what << " rendered, expected: " << expected["error"];
  EXPECT_EQ(got.error().code, ErrorCode::kInvalidArgument) << what;
  EXPECT_FALSE(got.error().message.empty()) << what;
  if (expected["error_type"] == "raise_exception") {
    EXPECT_EQ(got.error().message, expected["error"].get<std::string>()) << what;
  }
}

/// What apply_chat_template passes: the conversation, the special tokens, and the caller's own keywords.
ordered_json chat_context(const ordered_json& oracle, const ordered_json& one) {
  ordered_json context = {{"messages", one["messages"]}, {"tools", one["tools"]}, {"documents", nullptr}};
  context.update(oracle["special_tokens"]);
  context.update(one["kwargs"]);
  return context;
}

TEST(TemplateOracle, EveryCaseIsEqual) {
  if (!fs::exists(template_oracles())) {
    GTEST_SKIP() << "no reference data at " << template_oracles() << "; set OCTAVO_ORACLES";
  }
  std::size_t cases = 0;
  for (const auto& file : fs::directory_iterator(template_oracles())) {
    if (file.path().extension() != ".json") continue;
    const ordered_json oracle = ordered_json::parse(std::ifstream(file.path()));
    const bool whole = oracle.contains("template");
    for (const ordered_json& one : oracle["cases"]) {
      const std::string source = (whole ? oracle : one)["template"].get<std::string>();
      const ordered_json context = whole ? chat_context(oracle, one) : one["context"];
      expect_outcome(one, render(source, context, oracle["now"].get<std::string>()),
                     file.path().stem().string() + "/" + one["name"].get<std::string>());
      ++cases;
    }
  }
  EXPECT_GE(cases, 900U);
}

/// The same for a plain clone: snippets chosen here, their results made by tools/make_template_cases.py.
TEST(TemplateCases, EveryCaseIsEqual) {
  const fs::path file = fs::path(OCTAVO_SOURCE_DIR) / "tests/golden/template_cases.json";
  const ordered_json golden = ordered_json::parse(std::ifstream(file));
  for (const ordered_json& one : golden["cases"]) {
    const std::string source = one["template"].get<std::string>();
    expect_outcome(one, render(source, golden["context"], golden["now"].get<std::string>()), source);
  }
  EXPECT_GE(golden["cases"].size(), 300U);
}

}  // namespace
}  // namespace octavo
