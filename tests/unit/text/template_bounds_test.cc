// Hostile templates and contexts: an error in good time, never a crash, a hang or a flood.
#include <gtest/gtest.h>

#include <ctime>
#include <string>

#include "octavo/chat_template.h"

namespace octavo {
namespace {

Result<std::string> render(const std::string& source, const std::string& context = "{}") {
  auto parsed = ChatTemplate::parse(source);
  if (!parsed) return std::move(parsed).error();
  return parsed->render(context, parse_local_time("2026-01-15T12:34:56").value());
}

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

struct Hostile {
  const char* name;
  std::string source;
};

void PrintTo(const Hostile& hostile, std::ostream* out) { *out << hostile.name; }

class HostileTemplate : public testing::TestWithParam<Hostile> {};

TEST_P(HostileTemplate, IsRefused) {
  const auto got = render(GetParam().source);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(got.error().message.empty());
}

const std::string kGrow = "{% set ns = namespace(v=";  // then: an initial value, and a step that doubles it
std::string doubling(const std::string& start, const std::string& step) {
  return kGrow + start + ") %}{% for i in range(90000) %}{% set ns.v = " + step + " %}{% endfor %}{{ ns.v }}";
}

INSTANTIATE_TEST_SUITE_P(
    Templates, HostileTemplate,
    testing::Values(
        Hostile{"endless_recursion", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"},
        Hostile{"endless_loop_recursion", "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"},
        Hostile{"nested_loops", "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}"},
        Hostile{"wide_range", "{{ range(100001) }}"},
        Hostile{"huge_range", "{{ range(2 ** 62, -(2 ** 62), -1)|list }}"},
        Hostile{"text_doubles", doubling("'ab'", "ns.v ~ ns.v")}, Hostile{"text_repeats", "{{ 'a' * 10 ** 10 }}"},
        Hostile{"list_repeats", "{{ [1] * 10 ** 12 }}"}, Hostile{"list_doubles", doubling("[1]", "ns.v + ns.v")},
        Hostile{"list_holds_itself_twice", doubling("[1]", "[ns.v, ns.v]")},
        Hostile{"dict_holds_itself_twice", doubling("{}", "{1: ns.v, 2: ns.v}")},
        Hostile{"deep_list", doubling("[]", "[ns.v]")}, Hostile{"deep_namespaces", doubling("1", "namespace(v=ns.v)")},
        Hostile{"namespace_in_itself", "{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}"},
        Hostile{"big_integer", doubling("3", "ns.v * ns.v")}, Hostile{"big_power", "{{ 9 ** (9 ** 9) }}"},
        Hostile{"wide_format", "{{ '%999999999d'|format(1) }}"},
        Hostile{"wide_brace_format", "{{ '{:>999999999}'.format(1) }}"},
        Hostile{"wide_center", "{{ 'a'|center(10 ** 12) }}"}, Hostile{"wide_indent", "{{ 'a\nb'|indent(10 ** 12) }}"},
        Hostile{"long_batch", "{{ [1]|batch(10 ** 12, 0)|list }}"},
        Hostile{"long_replace", doubling("'a'", "ns.v|replace('a', 'aaaaaaaaaaaaaaaa')")},
        Hostile{"deep_parentheses", "{{ " + repeated("(", 100000) + "1" + repeated(")", 100000) + " }}"},
        Hostile{"deep_lists", "{{ " + repeated("[", 100000) + repeated("]", 100000) + " }}"},
        Hostile{"long_sum", "{{ 1" + repeated(" + 1", 100000) + " }}"},
        Hostile{"long_not", "{{ " + repeated("not ", 100000) + "1 }}"},
        Hostile{"long_minus", "{{ " + repeated("-", 100000) + "1 }}"},
        Hostile{"deep_ifs", repeated("{% if 1 %}", 100000)},
        Hostile{"deep_fors", repeated("{% for a in [1] %}", 1000) + repeated("{% endfor %}", 1000)},
        Hostile{"not_utf8", "a\xff"}, Hostile{"half_surrogate", "{{ '\\ud800' }}"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(TemplateBounds, LongWorkEndsInTime) {
  const std::clock_t begin = std::clock();  // of this process alone: the machine may be busy
  (void)render("{% for a in range(90000) %}{% for b in range(90000) %}{{ 'é'|upper }}{% endfor %}{% endfor %}");
  EXPECT_LT((std::clock() - begin) / CLOCKS_PER_SEC, 60);
}

TEST(TemplateBounds, EqualityOfDeepSharedListsIsBounded) {
  const std::string grow =
      "{% for i in range(22) %}{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor %}";
  const auto got = render("{% set ns = namespace(a=[], b=[]) %}" + grow + "{{ ns.a == ns.b }}");
  EXPECT_TRUE(!got.ok() || *got == "True");
}

TEST(TemplateBounds, MacrosMayRecurseAsDeepAsASchemaNests) {
  const auto got = render("{% macro m(n) %}{{ n }}{% if n > 0 %} {{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}");
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_TRUE(got->ends_with(" 1 0"));
}

TEST(TemplateBounds, ContextsAreForeignToo) {
  EXPECT_FALSE(render("x", "[]").ok());
  EXPECT_FALSE(render("x", "{").ok());
  EXPECT_FALSE(render("x", "{\"a\": 1} 2").ok());
  EXPECT_FALSE(render("x", "{\"a\": " + repeated("[", 100000)).ok());
  EXPECT_FALSE(render("x", "{\"a\": \"\xff\"}").ok());
  EXPECT_FALSE(render("x", "{\"a\": 1" + repeated("0", 100000) + "}").ok());
}

TEST(TemplateBounds, ManyKeysAreFound) {
  std::string context = "{\"d\": {";
  for (int i = 0; i < 5000; ++i) context += "\"k" + std::to_string(i) + "\": " + std::to_string(i) + ", ";
  context += "\"k7\": -1}}";
  const auto got = render("{{ d.k4999 }} {{ d.k7 }} {{ d|length }} {{ d.k5000 is defined }}", context);
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(*got, "4999 -1 5000 False");
}

TEST(TemplateErrors, NameLineAndReason) {
  const auto message = [](const std::string& source) {
    const auto got = render(source);
    return got ? "rendered: " + *got : got.error().message;
  };
  EXPECT_EQ(message("a\n{% if x %}\n{% endfor %}"),
            "chat template, line 3: unknown tag 'endfor'; the open block needs 'endif'");
  EXPECT_EQ(message("\n{{ x.y }}"), "'x' is undefined (chat template, line 2)");
  EXPECT_EQ(message("{{ {'a': 1}.b.c }}"), "'dict object' has no attribute 'b' (chat template, line 1)");
  EXPECT_EQ(message("{{ raise_exception('as it is') }}"), "as it is");
  EXPECT_EQ(message("{% include 'x' %}"),
            "chat template, line 1: 'include' needs other template files, but a chat template stands alone");
}

TEST(LocalTime, IsReadStrictly) {
  const auto time = parse_local_time("2026-01-15T12:34:56");
  ASSERT_TRUE(time.ok());
  EXPECT_EQ(*ChatTemplate::parse("{{ strftime_now('%d %b %Y %H:%M:%S %j %A') }}").value().render("{}", *time),
            "15 Jan 2026 12:34:56 015 Thursday");
  for (const char* wrong : {"", "2026-01-15", "2026-02-30T00:00:00", "2026-01-15T24:00:00", "2026-01-15 12:34:56",
                            "2026-01-15T12:34:5x", "-026-01-15T12:34:56"}) {
    EXPECT_FALSE(parse_local_time(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace octavo
