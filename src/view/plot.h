// The course of training runs as a picture (SVG): loss, BLEU, learning rate, gradient norm and speed over updates, one
// colour a run.
//
//     const PlotRun run = parse_metrics(text, "zh-en");            // M.metrics.jsonl
//     const std::string svg = plot_svg({&run, 1}, {.log = true});
//
// A line of the metrics is a JSON object: {"kind":"report","update":100,"loss":4.2,"rate":0.001,"norm":1.3,
// "tokens_per_second":9000} or {"kind":"validation","update":500,"loss":3.9,"score":12.1} (kind "valid" and field
// "bleu" mean the same). Fields that are not known, or that are no numbers, are ignored.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace regard {

struct PlotPoint {
  double update, value;
};

struct PlotRun {
  std::string name;
  std::map<std::string, std::vector<PlotPoint>> series;  // by kind and field: "report.loss", "validation.score"
  std::vector<std::string> notes;                        // what was left out: "line 17 is no JSON object"
};

// `text` may end in the middle of a line, as that of a run that goes on does; other lines that are no JSON are counted
// in a note. Throws if there is nothing to draw.
PlotRun parse_metrics(std::string_view text, const std::string& name);

struct PlotSettings {
  bool log = false;  // loss, learning rate and norm on a logarithmic scale
  int columns = 2;   // of panels
};
std::string plot_svg(std::span<const PlotRun> runs, const PlotSettings& settings = {});

// Round numbers between the two, about `count` of them: 0, 0.5, 1, …; on a logarithmic scale 1, 2, 5, 10, …
std::vector<double> plot_ticks(double least, double most, int count, bool log);
std::string plot_number(double value);  // "0.001", "1.5k", "2M"

}  // namespace regard
