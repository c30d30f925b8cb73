// Plots as inline SVG for the HTML report: they take their colours from its style sheet, and run no script.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace octavo {

struct PlotPoint {
  double x = 0, y = 0;
  std::string note = {};     // shown when the pointer rests on the mark
  bool highlighted = false;  // a larger, ringed mark
};

/// Points in the order in which the line goes. Points that are not finite, or not positive on a logarithmic axis, are
/// left out.
struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points = {};
  bool line = true, marks = true;
  bool dashed = false;  // a limit or a prediction, rather than a measurement
};

struct PlotAxis {
  std::string label;  // with its unit
  bool logarithmic = false;
  bool from_zero = true;  // a linear axis shows zero, too
};

struct LineChart {
  std::string title;
  PlotAxis x, y;
  std::vector<PlotSeries> series = {};
};

/// Horizontal bars: for each label one bar of every series. Values below zero count as zero.
struct BarChart {
  std::string title, axis_label;
  std::vector<std::string> labels;
  std::vector<std::pair<std::string, std::vector<double>>> series;  // name, a value for each label
};

/// Values of each name (in any order) over the share of them that is at most as large, in percent.
[[nodiscard]] LineChart quantile_chart(std::string title, PlotAxis values,
                                       const std::vector<std::pair<std::string, std::vector<double>>>& series);

/// A <figure> with title, plot and legend.
[[nodiscard]] std::string svg_figure(const LineChart& chart);
[[nodiscard]] std::string svg_figure(const BarChart& chart);

/// Where an axis from `least` to `most` gets its numbers: steps of 1, 2 or 5 times a power of ten; on a logarithmic
/// axis powers of ten, with 2 and 5 between them if there are few. The first and the last enclose the range.
[[nodiscard]] std::vector<double> axis_ticks(double least, double most, bool logarithmic);
/// "0.25", "1500", "20k", "1.5M", "2e-05"
[[nodiscard]] std::string tick_text(double value);

/// For text and for attributes: markup characters as entities, what is not UTF-8 or not allowed in HTML as U+FFFD.
[[nodiscard]] std::string html_text(const std::string& text);

}  // namespace octavo
