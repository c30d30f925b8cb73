// One HTML page that stands alone: conditions, sections of text, tables and plots. No scripts, nothing fetched.
//
//   HtmlReport page("What a cache gains");
//   page.condition("machine", "2 cores");
//   page.section("Decoding").text("…").table({.head = {"tokens", "ms"}, .rows = {{"64", "1.5"}}}).plot(chart);
//   OCTAVO_CHECK_OK(page.write("report.html"));
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "cli/svg_plot.h"
#include "octavo/result.h"

namespace octavo {

/// Cells that start with a digit or a sign stand to the right.
struct HtmlTable {
  std::string caption = {};
  std::vector<std::string> head = {};
  std::vector<std::vector<std::string>> rows = {};  // [][head.size()]
};

/// Everything given is text: markup in it is shown as it is written.
class HtmlReport {
 public:
  explicit HtmlReport(std::string title);

  /// What the figures depend on, in a box below the title: machine, model, command. Date and version come by
  /// themselves.
  HtmlReport& condition(std::string name, std::string value);
  HtmlReport& section(const std::string& title);
  HtmlReport& text(const std::string& paragraph);
  HtmlReport& code(const std::string& lines);  // fixed width, lines kept
  HtmlReport& table(const HtmlTable& table);
  HtmlReport& plot(const LineChart& chart);
  HtmlReport& plot(const BarChart& chart);

  [[nodiscard]] std::string html() const;
  /// Replaces `path`; an error (kIo) names it.
  [[nodiscard]] Result<> write(const std::string& path) const;

 private:
  std::string title_, body_;
  std::vector<std::pair<std::string, std::string>> conditions_;
  std::vector<std::string> sections_;
};

}  // namespace octavo
