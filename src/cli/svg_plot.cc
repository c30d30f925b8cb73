#include "cli/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

#include "cli/jsonl.h"

namespace octavo {
namespace {

constexpr double kWidth = 720, kHeight = 360;
constexpr double kLeft = 68, kRight = 18, kTop = 14, kBottom = 50;
constexpr double kBarLeft = 210, kBarRight = 70, kBarHeight = 16, kBarGap = 12;
constexpr std::size_t kColours = 8;  // of the style sheet

double slope(double from, double to) { return to == from ? 0 : 1 / (to - from); }

/// Values of one axis to places between 0 and 1.
class Scale {
 public:
  Scale(std::vector<double> ticks, bool logarithmic) : ticks_(std::move(ticks)), logarithmic_(logarithmic) {}

  [[nodiscard]] double place(double value) const {
    const double from = of(ticks_.front());
    return (of(value) - from) * slope(from, of(ticks_.back()));
  }
  [[nodiscard]] const std::vector<double>& ticks() const { return ticks_; }

 private:
  [[nodiscard]] double of(double value) const { return logarithmic_ ? std::log10(value) : value; }

  std::vector<double> ticks_;
  bool logarithmic_;
};

bool shown(double value, const PlotAxis& axis) { return std::isfinite(value) && (!axis.logarithmic || value > 0); }

bool shown(const PlotPoint& point, const LineChart& chart) {
  return shown(point.x, chart.x) && shown(point.y, chart.y);
}

Scale scale_of(const LineChart& chart, const PlotAxis& axis, double PlotPoint::*value) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const PlotSeries& series : chart.series) {
    for (const PlotPoint& point : series.points) {
      if (!shown(point, chart)) continue;
      least = std::min(least, point.*value);
      most = std::max(most, point.*value);
    }
  }
  if (least > most) least = axis.logarithmic ? 1 : 0, most = axis.logarithmic ? 10 : 1;
  if (!axis.logarithmic && axis.from_zero) least = std::min(least, 0.0), most = std::max(most, 0.0);
  return {axis_ticks(least, most, axis.logarithmic), axis.logarithmic};
}

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)", x, y, anchor, html_text(text));
}

std::string line_of(const char* kind, double x1, double y1, double x2, double y2) {
  return fmt::format(R"(<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>)", kind, x1, y1, x2, y2);
}

std::string figure(const std::string& title, double height, const std::string& body,
                   const std::vector<std::string>& legend) {
  std::string out = fmt::format(
      "<figure><figcaption>{0}</figcaption>\n<svg viewBox=\"0 0 {1} {2:.0f}\" role=\"img\" aria-label=\"{0}\">{3}"
      "</svg>\n",
      html_text(title), kWidth, height, body);
  if (!legend.empty()) {
    out += "<ul class=\"legend\">";
    for (std::size_t i = 0; i < legend.size(); ++i) {
      out += fmt::format("<li><i class=\"c{}\"></i>{}</li>", i % kColours, html_text(legend[i]));
    }
    out += "</ul>\n";
  }
  return out + "</figure>\n";
}

}  // namespace

std::string html_text(const std::string& text) {
  // JSON's writer and reader replace what is not UTF-8.
  const auto valid = Json::parse(dump(Json(text))).get<std::string>();
  std::string out;
  for (const char c : valid) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      case '\t':
      case '\n': out += c; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
          out += "\xEF\xBF\xBD";
        else
          out += c;
    }
  }
  return out;
}

std::string tick_text(double value) {
  const double size = std::abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-3)) return fmt::format("{:.3g}", value);
  constexpr std::array<const char*, 5> kUnits = {"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  double scaled = value;
  while (std::abs(scaled) >= 10'000 || (unit > 0 && std::abs(scaled) >= 1000)) {
    scaled /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}g}{}", scaled, std::abs(scaled) >= 1000 ? 4 : 3, kUnits[unit]);
}

std::vector<double> axis_ticks(double least, double most, bool logarithmic) {
  std::vector<double> ticks;
  if (logarithmic) {
    const int first = static_cast<int>(std::floor(std::log10(least))), last = static_cast<int>(std::log10(most)) + 1;
    const bool between = last - first <= 3;
    for (int power = first; power <= last; ++power) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        if (digit == 1 || (between && power < last)) ticks.push_back(digit * std::pow(10.0, power));
      }
    }
    while (ticks.size() > 2 && ticks[1] <= least) ticks.erase(ticks.begin());
    while (ticks.size() > 2 && ticks[ticks.size() - 2] >= most) ticks.pop_back();
    return ticks;
  }
  if (least == most) most = least == 0 ? 1 : least + std::abs(least);
  const double rough = (most - least) / 6, power = std::pow(10.0, std::floor(std::log10(rough)));
  const double step = power * (rough <= power ? 1 : rough <= 2 * power ? 2 : rough <= 5 * power ? 5 : 10);
  const double first = std::floor(least / step), last = std::ceil(most / step);
  for (double i = first; i <= last; ++i) ticks.push_back(i * step);
  return ticks;
}

LineChart quantile_chart(std::string title, PlotAxis values,
                         const std::vector<std::pair<std::string, std::vector<double>>>& series) {
  LineChart chart{std::move(title), {"share of all, %"}, std::move(values), {}};
  for (const auto& [name, list] : series) {
    std::vector<double> sorted;
    std::copy_if(list.begin(), list.end(), std::back_inserter(sorted), [](double v) { return std::isfinite(v); });
    std::sort(sorted.begin(), sorted.end());
    PlotSeries line{name, {}, true, false};
    constexpr std::size_t kMostPoints = 1000;
    const std::size_t points = std::min(sorted.size(), kMostPoints);
    for (std::size_t i = 0; i < points; ++i) {
      const std::size_t rank = points < 2 ? 0 : i * (sorted.size() - 1) / (points - 1);
      line.points.push_back({100.0 * static_cast<double>(rank + 1) / static_cast<double>(sorted.size()), sorted[rank]});
    }
    chart.series.push_back(std::move(line));
  }
  return chart;
}

std::string svg_figure(const LineChart& chart) {
  const Scale x = scale_of(chart, chart.x, &PlotPoint::x), y = scale_of(chart, chart.y, &PlotPoint::y);
  const auto at_x = [&](double value) { return kLeft + x.place(value) * (kWidth - kLeft - kRight); };
  const auto at_y = [&](double value) { return kHeight - kBottom - y.place(value) * (kHeight - kTop - kBottom); };
  std::string body;
  for (const double tick : x.ticks()) {
    body += line_of("grid", at_x(tick), kTop, at_x(tick), kHeight - kBottom);
    body += text_at(at_x(tick), kHeight - kBottom + 17, "middle", tick_text(tick));
  }
  for (const double tick : y.ticks()) {
    body += line_of("grid", kLeft, at_y(tick), kWidth - kRight, at_y(tick));
    body += text_at(kLeft - 7, at_y(tick) + 4, "end", tick_text(tick));
  }
  body += line_of("axis", kLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom);
  body += line_of("axis", kLeft, kTop, kLeft, kHeight - kBottom);
  body += text_at((kLeft + kWidth - kRight) / 2, kHeight - 10, "middle", chart.x.label);
  body += fmt::format(R"(<text text-anchor="middle" transform="translate(14 {:.1f}) rotate(-90) ">{}</text>)",
                      (kTop + kHeight - kBottom) / 2, html_text(chart.y.label));
  std::vector<std::string> legend;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const PlotSeries& series = chart.series[i];
    legend.push_back(series.name);
    std::string path, marks;
    for (const PlotPoint& point : series.points) {
      if (!shown(point, chart)) continue;
      const double px = at_x(point.x), py = at_y(point.y);
      path += fmt::format("{:.1f},{:.1f} ", px, py);
      if (!series.marks) continue;
      const std::string note = point.note.empty()
                                   ? fmt::format("{}: {}, {}", series.name, tick_text(point.x), tick_text(point.y))
                                   : point.note;
      marks += fmt::format(R"(<circle class="mark{}" cx="{:.1f}" cy="{:.1f}" r="{}"><title>{}</title></circle>)",
                           point.highlighted ? " best" : "", px, py, point.highlighted ? 6.5 : 3.5, html_text(note));
    }
    body += fmt::format("<g class=\"c{}\">", i % kColours);
    if (series.line && !path.empty()) {
      path.pop_back();
      body += fmt::format(R"(<polyline class="curve{}" points="{}"/>)", series.dashed ? " dashed" : "", path);
    }
    body += marks + "</g>";
  }
  return figure(chart.title, kHeight, body, legend);
}

std::string svg_figure(const BarChart& chart) {
  double most = 0;
  for (const auto& [name, values] : chart.series) {
    for (const double value : values) most = std::isfinite(value) ? std::max(most, value) : most;
  }
  const Scale scale(axis_ticks(0, most, false), false);
  const auto at_x = [&](double value) { return kBarLeft + scale.place(value) * (kWidth - kBarLeft - kBarRight); };
  const double group = kBarHeight * static_cast<double>(chart.series.size()) + kBarGap;
  const double bottom = kTop + group * static_cast<double>(chart.labels.size());
  std::string body;
  for (const double tick : scale.ticks()) {
    body += line_of("grid", at_x(tick), kTop, at_x(tick), bottom);
    body += text_at(at_x(tick), bottom + 17, "middle", tick_text(tick));
  }
  for (std::size_t row = 0; row < chart.labels.size(); ++row) {
    const double top = kTop + group * static_cast<double>(row) + kBarGap / 2;
    body += text_at(kBarLeft - 8, top + (group - kBarGap) / 2 + 4, "end", chart.labels[row]);
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
      const std::vector<double>& values = chart.series[i].second;
      const double value = row < values.size() && std::isfinite(values[row]) ? std::max(values[row], 0.0) : 0;
      const double y = top + kBarHeight * static_cast<double>(i);
      body += fmt::format(R"(<rect class="bar c{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{}"/>)", i % kColours,
                          at_x(0), y, at_x(value) - at_x(0), kBarHeight - 2);
      body += text_at(at_x(value) + 5, y + kBarHeight - 4, "start", fmt::format("{:.4g}", value));
    }
  }
  body += line_of("axis", kBarLeft, kTop, kBarLeft, bottom);
  body += text_at((kBarLeft + kWidth - kBarRight) / 2, bottom + 38, "middle", chart.axis_label);
  std::vector<std::string> legend;
  for (const auto& [name, values] : chart.series) legend.push_back(name);
  if (legend.size() < 2) legend.clear();
  return figure(chart.title, bottom + 46, body, legend);
}

}  // namespace octavo
