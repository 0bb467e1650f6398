#include "view/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>

#include "base/check.h"
#include "io/json.h"

namespace regard {
namespace {

// Colours that people with colour-blindness can tell apart (Okabe and Ito 2008).
constexpr std::array<std::string_view, 8> kColors = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                     "#E69F00", "#56B4E9", "#000000", "#8C6D1F"};

constexpr double kPanelWidth = 460, kPanelHeight = 270, kLeft = 62, kRight = 16, kTop = 30, kBottom = 40;
constexpr std::size_t kMostPoints = 1200;  // of a line: more than its pixels show nothing more

struct Panel {
  std::string_view title;
  std::vector<std::string_view> lines;  // what is drawn as a line: of the reports
  std::vector<std::string_view> marks;  // with a mark at every point: of the validations
  bool may_be_log = false, from_zero = false;
  bool often_equal = false;  // of several runs: those below show as bands beside those above
};

const std::vector<Panel>& panels() {
  static const std::vector<Panel> all = {
      {"loss", {"report.loss"}, {"validation.loss"}, true, false},
      {"BLEU", {}, {"validation.score"}, false, true},
      {"learning rate", {"report.rate"}, {}, true, true, true},
      {"gradient norm", {"report.norm"}, {}, true, true},
      {"tokens per second", {"report.tokens_per_second"}, {}, false, true},
  };
  return all;
}

const std::vector<PlotPoint>* find(const PlotRun& run, std::string_view name) {
  const auto found = run.series.find(std::string(name));
  return found == run.series.end() ? nullptr : &found->second;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    switch (letter) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter;
    }
  }
  return out;
}

// Where values stand on an axis.
class Axis {
 public:
  Axis(double least, double most, double begin, double end, bool log)
      : least_(scaled(least, log)), most_(scaled(most, log)), begin_(begin), end_(end), log_(log) {}
  double at(double value) const { return begin_ + (end_ - begin_) * (scaled(value, log_) - least_) / (most_ - least_); }

 private:
  static double scaled(double value, bool log) { return log ? std::log10(value) : value; }
  double least_, most_, begin_, end_;
  bool log_;
};

struct Range {
  double least = 0, most = 0;
  bool empty = true;

  void add(double value) {
    least = empty ? value : std::min(least, value);
    most = empty ? value : std::max(most, value);
    empty = false;
  }
};

// A range that begins and ends at round numbers and is not empty.
Range rounded(Range range, bool log, bool from_zero) {
  if (log) {
    if (range.most <= range.least * 1.001) {
      range.least /= 2;
      range.most *= 2;
    }
    const double margin = std::pow(range.most / range.least, 0.03);
    return {range.least / margin, range.most * margin, false};
  }
  if (from_zero && range.least >= 0) range.least = 0;
  if (range.most - range.least <= 1e-9 * std::max(std::abs(range.least), std::abs(range.most))) {
    const double room = range.most == 0 ? 1 : std::abs(range.most) / 2;
    range.most += room;
    if (range.least != 0) range.least -= room;
  }
  const std::vector<double> ticks = plot_ticks(range.least, range.most, 5, false);
  const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : range.most - range.least;
  return {std::floor(range.least / step + 1e-9) * step, std::ceil(range.most / step - 1e-9) * step, false};
}

// At most kMostPoints: the mean of neighbours, where they are.
std::vector<PlotPoint> thinned(const std::vector<PlotPoint>& points) {
  if (points.size() <= kMostPoints) return points;
  std::vector<PlotPoint> out;
  for (std::size_t part = 0; part < kMostPoints; ++part) {
    const std::size_t begin = part * points.size() / kMostPoints, end = (part + 1) * points.size() / kMostPoints;
    PlotPoint mean{0, 0};
    for (std::size_t i = begin; i < end; ++i) {
      mean.update += points[i].update;
      mean.value += points[i].value;
    }
    const auto count = static_cast<double>(end - begin);
    out.push_back({mean.update / count, mean.value / count});
  }
  return out;
}

class Drawing {
 public:
  Drawing(std::span<const PlotRun> runs, const PlotSettings& settings) : runs_(runs), settings_(settings) {}

  std::string svg() {
    std::vector<const Panel*> shown;
    for (const Panel& panel : panels()) {
      const bool any = std::any_of(runs_.begin(), runs_.end(), [&](const PlotRun& run) {
        const auto has = [&](std::string_view name) { return find(run, name) != nullptr; };
        return std::any_of(panel.lines.begin(), panel.lines.end(), has) ||
               std::any_of(panel.marks.begin(), panel.marks.end(), has);
      });
      if (any) shown.push_back(&panel);
    }
    const int columns = std::clamp(settings_.columns, 1, std::max(1, static_cast<int>(shown.size())));
    const int rows = (static_cast<int>(shown.size()) + columns - 1) / columns;
    const double width = columns * kPanelWidth;
    const double head = legend(width);
    for (std::size_t i = 0; i < shown.size(); ++i) {
      const int column = static_cast<int>(i) % columns, row = static_cast<int>(i) / columns;
      panel(*shown[i], column * kPanelWidth, head + row * kPanelHeight);
    }
    const double height = head + rows * kPanelHeight;
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" height=\"{1:g}\" viewBox=\"0 0 {0:g} {1:g}\" "
               "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0:g}\" height=\"{1:g}\" "
               "fill=\"white\"/>\n",
               width, height) +
           out_ + "</svg>\n";
  }

 private:
  template <class... Parts>
  void draw(fmt::format_string<Parts...> format, Parts&&... parts) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Parts>(parts)...);
    out_ += '\n';
  }

  std::string_view color(std::size_t run) const { return kColors[run % kColors.size()]; }

  // Which colour is which run; gives its height.
  double legend(double width) {
    double x = kLeft, y = 22;
    const auto advance = [&](double room) {
      if (x > kLeft && x + room > width - kRight) {
        x = kLeft;
        y += 20;
      }
    };
    const auto room_of = [](std::string_view text) {  // Chinese characters are twice as wide
      double room = 0;
      for (const char letter : text) {
        const auto byte = static_cast<unsigned char>(letter);
        room += byte < 0x80 ? 7 : byte >= 0xE0 ? 13 : byte >= 0xC0 ? 7 : 0;
      }
      return room;
    };
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const double room = 30 + room_of(runs_[i].name);
      advance(room + 18);
      draw("<line x1=\"{:g}\" y1=\"{:g}\" x2=\"{:g}\" y2=\"{:g}\" stroke=\"{}\" stroke-width=\"3\"/>", x, y - 4, x + 22,
           y - 4, color(i));
      draw("<text x=\"{:g}\" y=\"{:g}\">{}</text>", x + 28, y, escaped(runs_[i].name));
      x += room + 18;
    }
    const bool both = std::any_of(runs_.begin(), runs_.end(), [](const PlotRun& run) {
      return find(run, "report.loss") != nullptr && find(run, "validation.loss") != nullptr;
    });
    if (both) {
      advance(190);
      draw("<line x1=\"{:g}\" y1=\"{:g}\" x2=\"{:g}\" y2=\"{:g}\" stroke=\"#777\" stroke-width=\"1.2\"/>", x, y - 4,
           x + 22, y - 4);
      draw("<text x=\"{:g}\" y=\"{:g}\" fill=\"#555\">training</text>", x + 28, y);
      draw("<circle cx=\"{:g}\" cy=\"{:g}\" r=\"3\" fill=\"#777\"/>", x + 96, y - 4);
      draw("<text x=\"{:g}\" y=\"{:g}\" fill=\"#555\">validation</text>", x + 106, y);
    }
    return y + 10;
  }

  void panel(const Panel& panel, double left, double top) {
    bool log = settings_.log && panel.may_be_log;
    Range updates, values;
    const auto each = [&](auto&& use) {
      for (std::size_t i = 0; i < runs_.size(); ++i) {
        for (const std::string_view name : panel.lines)
          if (const auto* points = find(runs_[i], name)) use(i, thinned(*points), false);
        for (const std::string_view name : panel.marks)
          if (const auto* points = find(runs_[i], name)) use(i, thinned(*points), true);
      }
    };
    each([&](std::size_t, const std::vector<PlotPoint>& points, bool) {
      for (const PlotPoint& point : points) {
        updates.add(point.update);
        if (!log || point.value > 0) values.add(point.value);
      }
    });
    if (values.empty) {  // nothing above zero
      log = false;
      values.add(0);
    }
    updates.least = std::min(updates.least, 0.0);
    if (updates.most <= updates.least) updates.most = updates.least + 1;
    values = rounded(values, log, panel.from_zero);
    const double x0 = left + kLeft, x1 = left + kPanelWidth - kRight;
    const double y0 = top + kPanelHeight - kBottom, y1 = top + kTop;
    const Axis x(updates.least, updates.most, x0, x1, false), y(values.least, values.most, y0, y1, log);

    draw("<text x=\"{:g}\" y=\"{:g}\" font-weight=\"bold\">{}{}</text>", x0, y1 - 10, panel.title,
         log ? " (logarithmic)" : "");
    for (const double tick : plot_ticks(values.least, values.most, 5, log)) {
      draw("<line x1=\"{:g}\" y1=\"{:.2f}\" x2=\"{:g}\" y2=\"{:.2f}\" stroke=\"#ddd\"/>", x0, y.at(tick), x1,
           y.at(tick));
      draw("<text x=\"{:g}\" y=\"{:.2f}\" text-anchor=\"end\" fill=\"#333\">{}</text>", x0 - 6, y.at(tick) + 4,
           plot_number(tick));
    }
    for (const double tick : plot_ticks(updates.least, updates.most, 6, false)) {
      draw("<line x1=\"{0:.2f}\" y1=\"{1:g}\" x2=\"{0:.2f}\" y2=\"{2:g}\" stroke=\"#333\"/>", x.at(tick), y0, y0 + 4);
      draw("<text x=\"{:.2f}\" y=\"{:g}\" text-anchor=\"middle\" fill=\"#333\">{}</text>", x.at(tick), y0 + 17,
           plot_number(tick));
    }
    draw("<text x=\"{:g}\" y=\"{:g}\" text-anchor=\"end\" fill=\"#555\">updates</text>", x1, y0 + 32);
    draw("<path d=\"M{:g} {:g}V{:g}H{:g}\" fill=\"none\" stroke=\"#333\"/>", x0, y1, y0, x1);

    each([&](std::size_t run, const std::vector<PlotPoint>& points, bool marks) {
      std::string path;
      for (const PlotPoint& point : points) {
        if (log && point.value <= 0) continue;
        fmt::format_to(std::back_inserter(path), "{}{:.2f} {:.2f}", path.empty() ? 'M' : 'L', x.at(point.update),
                       y.at(point.value));
      }
      const double below = panel.often_equal ? 1.8 * static_cast<double>(runs_.size() - 1 - run) : 0;
      const double width = (marks ? 2 : 1.2) + below;
      draw(
          "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" "
          "stroke-linejoin=\"round\"><title>{}</title></path>",
          path, color(run), width, escaped(runs_[run].name));
      if (!marks && points.size() > 1) return;
      for (const PlotPoint& point : points) {
        if (log && point.value <= 0) continue;
        draw("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{}\" fill=\"{}\"><title>{} at {}: {:.6g}</title></circle>",
             x.at(point.update), y.at(point.value), points.size() > 60 ? "1.5" : "3", color(run),
             escaped(runs_[run].name), point.update, point.value);
      }
    });
  }

  std::span<const PlotRun> runs_;
  PlotSettings settings_;
  std::string out_;
};

std::optional<double> number_of(const Json& value) {
  switch (value.kind()) {
    case Json::Kind::kInteger:
    case Json::Kind::kNatural:
    case Json::Kind::kNumber: {
      const double number = value.number();
      return std::isfinite(number) ? std::optional(number) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

// Whether the line was an object that says which update it is about.
bool read_line(std::string_view line, PlotRun& run) {
  try {
    const Json object = Json::parse(line, "a line");
    if (object.kind() != Json::Kind::kObject) return false;
    const auto update = object.find("update");
    const std::optional<double> when = update ? number_of(*update) : std::nullopt;
    const auto named = object.find("kind");
    std::string kind(named && named->kind() == Json::Kind::kText ? named->text() : "report");
    if (kind == "valid") kind = "validation";
    if (!when) return true;
    for (const auto& [key, value] : object.object()) {
      if (key == "update") continue;
      if (const std::optional<double> number = number_of(value))
        run.series[kind + '.' + std::string(key == "bleu" ? "score" : key)].push_back({*when, *number});
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

PlotRun parse_metrics(std::string_view text, const std::string& name) {
  PlotRun run{.name = name, .series = {}, .notes = {}};
  std::size_t number = 0, wrong = 0, first_wrong = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const bool whole = end < text.size();
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos || read_line(line, run)) continue;
    if (!whole) {
      run.notes.push_back(fmt::format("{}: the last line, {}, is not complete and was left out", name, number));
    } else {
      if (++wrong == 1) first_wrong = number;
    }
  }
  if (wrong > 0)
    run.notes.push_back(fmt::format("{}: {} line{} left out, no JSON object: {} line {}", name, wrong,
                                    wrong == 1 ? "" : "s", wrong == 1 ? "it is" : "the first is", first_wrong));
  bool any = false;
  for (const Panel& panel : panels())
    for (const auto* names : {&panel.lines, &panel.marks})
      for (const std::string_view each : *names) any = any || find(run, each) != nullptr;
  check(any, "plot: '", name, "' has nothing to draw: expected lines such as ",
        R"({"kind":"report","update":100,"loss":4.2})", number == 0 ? ", got an empty file" : "");
  for (auto& [field, points] : run.series)
    std::stable_sort(points.begin(), points.end(),
                     [](const PlotPoint& a, const PlotPoint& b) { return a.update < b.update; });
  return run;
}

std::string plot_svg(std::span<const PlotRun> runs, const PlotSettings& settings) {
  check(!runs.empty(), "plot: no run to draw");
  return Drawing(runs, settings).svg();
}

std::vector<double> plot_ticks(double least, double most, int count, bool log) {
  std::vector<double> out;
  if (!(least < most) || count < 1) return {least};
  if (log) {
    const double decades = std::log10(most / least);
    const std::vector<double> within = decades > 4   ? std::vector<double>{1}
                                       : decades > 1 ? std::vector<double>{1, 2, 5}
                                                     : std::vector<double>{1, 1.5, 2, 3, 4, 5, 7};
    const int every = std::max(1, static_cast<int>(std::ceil(decades / 8)));
    for (int power = static_cast<int>(std::floor(std::log10(least))); power <= std::ceil(std::log10(most)); ++power) {
      if (power % every != 0) continue;
      for (const double digit : within) {
        const double tick = power < 0 ? digit / std::pow(10.0, -power) : digit * std::pow(10.0, power);
        if (tick >= least * (1 - 1e-9) && tick <= most * (1 + 1e-9)) out.push_back(tick);
      }
    }
    if (out.size() >= 2) return out;
    out.clear();  // less than from 1 to 2: as on a linear scale
  }
  const double rough = (most - least) / count, power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = power * 10;
  for (const double digit : {1.0, 2.0, 5.0}) {
    if (digit * power >= rough * (1 - 1e-9)) {
      step = digit * power;
      break;
    }
  }
  const double first = std::ceil(least / step - 1e-9), last = std::floor(most / step + 1e-9);
  for (double i = first; i <= last; ++i) out.push_back(i == 0 ? 0 : i * step);
  return out;
}

std::string plot_number(double value) {
  const double size = std::abs(value);
  if (size >= 1e6) return fmt::format("{:.6g}M", value / 1e6);
  if (size >= 1e4) return fmt::format("{:.6g}k", value / 1e3);
  return fmt::format("{:.6g}", value);
}

}  // namespace regard
