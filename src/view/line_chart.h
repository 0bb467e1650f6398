// Lines over a common axis as an SVG picture: what depends on length, time or distance, one line a competitor.
//
//     line_chart({{"additive", {{5, 41.2}, {15, 33.0}}}, {"none", {{5, 30.1}, {15, 12.4}}}},
//                {.title = "BLEU by length", .across = "words of the source", .up = "BLEU", .from_zero = true});
//
// With `categories` a point stands at the number of its category, 0, 1, …; a value that is not finite is a gap.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace regard {

struct ChartLine {
  std::string name;
  std::vector<std::pair<double, double>> points;  // in the order of the axis
};

struct LineChart {
  std::string title = {}, across = {}, up = {};
  std::vector<std::string> categories = {};  // of one or two lines
  bool log_across = false, log_up = false;   // what is not above 0 is a gap there
  bool from_zero = false, across_from_zero = false;
  bool bars = false;                // of categories: columns instead of lines
  std::optional<double> mark = {};  // a line upwards at this place,
  std::string mark_name = {};       // and what it means
};

std::string line_chart(const std::vector<ChartLine>& lines, const LineChart& chart);

}  // namespace regard
