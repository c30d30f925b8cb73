#include "cli/html_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <limits>
#include <regex>

#include "cli/jsonl.h"

namespace octavo {
namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// Every element that must be closed is, in order.
bool well_formed(const std::string& html) {
  std::vector<std::string> open;
  const std::regex tag("<(/?)([a-z][a-z0-9]*)[^>]*?(/?)>");
  for (std::sregex_iterator it(html.begin(), html.end(), tag), end; it != end; ++it) {
    const std::string name = (*it)[2];
    if (name == "meta" || (*it)[3].length() > 0) continue;
    if ((*it)[1].length() == 0) {
      open.push_back(name);
      continue;
    }
    if (open.empty() || open.back() != name) return false;
    open.pop_back();
  }
  return open.empty();
}

HtmlReport sample() {
  HtmlReport page("A & B");
  page.condition("model", "a \"quoted\" <name>");
  page.section("First").text("one < two").code("a\n  b").table({"sizes", {"what", "ms"}, {{"x", "1.5"}, {"y", "-"}}});
  page.plot(LineChart{"line", {"tokens"}, {"ms", true}, {{"s", {{1, 10, "<note>", true}, {2, 100}}}}});
  page.section("Second").plot(BarChart{"bars", "tok/s", {"a", "b"}, {{"left", {1, 2}}, {"right", {3, 4}}}});
  return page;
}

TEST(HtmlReport, HoldsWhatItWasGivenAndNothingFromOutside) {
  const std::string html = sample().html();
  EXPECT_TRUE(well_formed(html));
  for (const char* part : {"A &amp; B", "a &quot;quoted&quot; &lt;name&gt;", "one &lt; two", "a\n  b",
                           "<td class=\"n\">1.5</td>", "<td>-</td>", "&lt;note&gt;", "href=\"#s1\"", "<dt>date</dt>"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
  for (const char* part : {"<script", "http:", "https:", "url(", "@import", "src=", "<name>"}) {
    EXPECT_EQ(html.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(count_of(html, "<svg"), 2U);
  EXPECT_EQ(count_of(html, "<rect"), 4U);
}

TEST(HtmlReport, TextStaysTextWhateverItIs) {
  EXPECT_EQ(html_text("<a href='x'>&\"</a>"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;&lt;/a&gt;");
  EXPECT_EQ(html_text("a\xff\x01z"), "a\xEF\xBF\xBD\xEF\xBF\xBDz");
  EXPECT_EQ(html_text("ü\n"), "ü\n");
}

TEST(HtmlReport, WritesAFileOrSaysWhyNot) {
  const std::string path = testing::TempDir() + "report.html";
  ASSERT_TRUE(sample().write(path));
  std::ifstream in(path);
  const std::string read((std::istreambuf_iterator<char>(in)), {});
  EXPECT_TRUE(well_formed(read) && !read.empty());
  std::remove(path.c_str());
  const auto refused = sample().write("/nonexistent/report.html");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("/nonexistent/report.html"), std::string::npos);
}

TEST(SvgPlot, TicksEncloseTheRange) {
  EXPECT_EQ(axis_ticks(0, 10, false), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(axis_ticks(0, 0, false).front(), 0);
  EXPECT_EQ(axis_ticks(3, 900, true), (std::vector<double>{2, 5, 10, 20, 50, 100, 200, 500, 1000}));
  EXPECT_EQ(axis_ticks(10, 10, true).size(), 2U);
  for (const auto& [least, most] : {std::pair{-3.0, 7.5}, {0.001, 0.0011}, {5.0, 5.0}, {-4.0, -4.0}, {1e9, 3e12}}) {
    const auto ticks = axis_ticks(least, most, false);
    ASSERT_GE(ticks.size(), 2U);
    EXPECT_LE(ticks.size(), 12U);
    EXPECT_LE(ticks.front(), least);
    EXPECT_GE(ticks.back(), most);
    if (least <= 0) continue;
    const auto powers = axis_ticks(least, most, true);
    ASSERT_GE(powers.size(), 2U);
    EXPECT_LE(powers.front(), least * (1 + 1e-12));
    EXPECT_GE(powers.back(), most * (1 - 1e-12));
  }
}

TEST(SvgPlot, NumbersAreShort) {
  EXPECT_EQ(tick_text(0), "0");
  EXPECT_EQ(tick_text(0.25), "0.25");
  EXPECT_EQ(tick_text(1500), "1500");
  EXPECT_EQ(tick_text(20'000), "20k");
  EXPECT_EQ(tick_text(1.5e6), "1.5M");
  EXPECT_EQ(tick_text(2e-5), "2e-05");
}

TEST(SvgPlot, LeavesOutWhatHasNoPlace) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  LineChart chart{"c", {"x", true}, {"y"}, {{"s", {{0, 1}, {1, nan}, {-5, 2}, {10, 3}, {100, 4}}}}};
  const std::string svg = svg_figure(chart);
  EXPECT_EQ(count_of(svg, "<circle"), 2U);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_TRUE(well_formed(svg));
  chart.series.clear();
  EXPECT_TRUE(well_formed(svg_figure(chart)));
  const std::string bars = svg_figure(BarChart{"b", "y", {"one", "two"}, {{"s", {nan}}}});
  EXPECT_EQ(bars.find("nan"), std::string::npos);
  EXPECT_TRUE(well_formed(svg_figure(BarChart{})));
}

TEST(SvgPlot, QuantilesRise) {
  std::vector<double> values;
  for (int i = 5000; i-- > 0;) values.push_back(i);
  const LineChart chart = quantile_chart("q", {"ms"}, {{"all", values}, {"one", {7}}, {"none", {}}});
  ASSERT_EQ(chart.series.size(), 3U);
  const auto& points = chart.series[0].points;
  EXPECT_LE(points.size(), 1000U);
  EXPECT_EQ(points.front().y, 0);
  EXPECT_EQ(points.back().y, 4999);
  EXPECT_EQ(points.back().x, 100);
  EXPECT_TRUE(std::is_sorted(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.y < b.y; }));
  EXPECT_EQ(chart.series[1].points.size(), 1U);
  EXPECT_TRUE(chart.series[2].points.empty());
}

}  // namespace
}  // namespace octavo
