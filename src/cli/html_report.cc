#include "cli/html_report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cctype>
#include <ctime>
#include <fstream>

namespace octavo {
namespace {

// Colours of the series keep their distance for most kinds of colour blindness, on light and on dark.
constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2126; --soft: #5b6570; --rule: #d9dee4; --panel: #f5f7f9;
  --c0: #0b63b5; --c1: #c4530a; --c2: #0a7f5f; --c3: #a33a86; --c4: #8a6d00; --c5: #2a93c4; --c6: #6b4fc0; --c7: #5f6b73; }
@media (prefers-color-scheme: dark) { :root { --paper: #15181c; --ink: #e4e8ec; --soft: #9aa5b1; --rule: #343b43;
  --panel: #1d2228; --c0: #6db3f2; --c1: #f29b5b; --c2: #4fcfa5; --c3: #e58cca; --c4: #e0c14d; --c5: #8fd6f5;
  --c6: #b5a1f5; --c7: #b4bfc7; } }
@media print { :root { color-scheme: light; --paper: #fff; --ink: #000; --soft: #444; --rule: #bbb; --panel: #fff;
  --c0: #0b63b5; --c1: #c4530a; --c2: #0a7f5f; --c3: #a33a86; --c4: #8a6d00; --c5: #2a93c4; --c6: #6b4fc0; --c7: #5f6b73; }
  nav { display: none; } figure, tr, dl { break-inside: avoid; } h2 { break-after: avoid; }
  .legend i, .bar { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 60rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, sans-serif; }
h1 { font-size: 1.75rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; padding-top: .75rem; border-top: 1px solid var(--rule); }
p { margin: .6rem 0; max-width: 46rem; white-space: pre-line; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0; padding: .8rem 1rem;
  background: var(--panel); border: 1px solid var(--rule); border-radius: 6px; font-size: .9rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
nav { margin: 1rem 0; font-size: .9rem; } nav a { color: var(--c0); margin-right: 1rem; }
pre { overflow-x: auto; padding: .8rem 1rem; background: var(--panel); border: 1px solid var(--rule);
  border-radius: 6px; font-size: .85rem; line-height: 1.4; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: .3rem; }
th, td { padding: .3rem .9rem .3rem 0; text-align: left; border-bottom: 1px solid var(--rule); }
th { color: var(--soft); font-weight: 600; vertical-align: bottom; } td.n { text-align: right; white-space: nowrap; }
figure { margin: 1.5rem 0; } figcaption { font-weight: 600; margin-bottom: .3rem; }
svg { display: block; width: 100%; height: auto; max-width: 45rem; }
svg text { fill: var(--soft); font: 12px system-ui, sans-serif; }
.grid { stroke: var(--rule); } .axis { stroke: var(--soft); }
.curve { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; } .dashed { stroke-dasharray: 6 4; }
.mark { fill: currentColor; stroke: var(--paper); } .best { stroke: var(--ink); stroke-width: 2; }
.bar { fill: currentColor; }
.c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); } .c3 { color: var(--c3); }
.c4 { color: var(--c4); } .c5 { color: var(--c5); } .c6 { color: var(--c6); } .c7 { color: var(--c7); }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; margin: .4rem 0 0; padding: 0; list-style: none;
  font-size: .85rem; }
.legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .4rem; border-radius: 2px;
  background: currentColor; vertical-align: -.05rem; }
)";

bool is_number(const std::string& cell) {
  const std::size_t first = cell.find_first_not_of("+-~<>≤≥ ");
  return first != std::string::npos && std::isdigit(static_cast<unsigned char>(cell[first])) != 0;
}

}  // namespace

HtmlReport::HtmlReport(std::string title) : title_(std::move(title)) {}

HtmlReport& HtmlReport::condition(std::string name, std::string value) {
  conditions_.emplace_back(std::move(name), std::move(value));
  return *this;
}

HtmlReport& HtmlReport::section(const std::string& title) {
  body_ += fmt::format("<h2 id=\"s{}\">{}</h2>\n", sections_.size(), html_text(title));
  sections_.push_back(title);
  return *this;
}

HtmlReport& HtmlReport::text(const std::string& paragraph) {
  body_ += fmt::format("<p>{}</p>\n", html_text(paragraph));
  return *this;
}

HtmlReport& HtmlReport::code(const std::string& lines) {
  body_ += fmt::format("<pre>{}</pre>\n", html_text(lines));
  return *this;
}

HtmlReport& HtmlReport::table(const HtmlTable& table) {
  body_ += "<div class=\"wide\"><table>";
  if (!table.caption.empty()) body_ += fmt::format("<caption>{}</caption>", html_text(table.caption));
  body_ += "<thead><tr>";
  for (const std::string& cell : table.head) body_ += fmt::format("<th scope=\"col\">{}</th>", html_text(cell));
  body_ += "</tr></thead>\n<tbody>";
  for (const std::vector<std::string>& row : table.rows) {
    body_ += "<tr>";
    for (const std::string& cell : row) {
      body_ += fmt::format("<td{}>{}</td>", is_number(cell) ? " class=\"n\"" : "", html_text(cell));
    }
    body_ += "</tr>\n";
  }
  body_ += "</tbody></table></div>\n";
  return *this;
}

HtmlReport& HtmlReport::plot(const LineChart& chart) {
  body_ += svg_figure(chart);
  return *this;
}

HtmlReport& HtmlReport::plot(const BarChart& chart) {
  body_ += svg_figure(chart);
  return *this;
}

std::string HtmlReport::html() const {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<title>{0}</title>\n<style>{1}</style></head>\n<body><h1>{0}</h1>\n<dl>",
      html_text(title_), kStyle);
  for (const auto& [name, value] : conditions_) {
    out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", html_text(name), html_text(value));
  }
  out += fmt::format("<dt>date</dt><dd>{:%Y-%m-%d %H:%M} UTC</dd>\n<dt>version</dt><dd>octavo {}</dd></dl>\n",
                     fmt::gmtime(std::time(nullptr)), OCTAVO_VERSION);
  if (sections_.size() > 1) {
    out += "<nav>";
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      out += fmt::format("<a href=\"#s{}\">{}</a> ", i, html_text(sections_[i]));
    }
    out += "</nav>\n";
  }
  return out + body_ + "</body></html>\n";
}

Result<> HtmlReport::write(const std::string& path) const {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (!out) return Error{ErrorCode::kIo, path + ": cannot write there", "html"};
  out << html();
  out.close();
  if (!out) return Error{ErrorCode::kIo, path + ": cannot write all of it: is the disk full?", "html"};
  return Ok{};
}

}  // namespace octavo
