#include "view/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "view/svg.h"
#include "view/terminal.h"

namespace regard {
namespace {

// A step of 1, 2 or 5 times a power of ten, so that `most` takes at most `steps` of them.
std::size_t round_step(std::size_t most, std::size_t steps) {
  std::size_t step = 1;
  for (std::size_t factor = 1;; factor *= 10) {
    for (const std::size_t lead : {1u, 2u, 5u}) {
      step = lead * factor;
      if (most / step < steps) return step;
    }
  }
}

std::size_t last_used(std::span<const std::uint64_t> counts) {
  std::size_t last = counts.size();
  while (last > 0 && counts[last - 1] == 0) --last;
  return last == 0 ? 0 : last - 1;
}

std::uint64_t sum(std::span<const std::uint64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

std::string repeated(std::string_view what, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += what;
  return out;
}

// The part of a cloud that shows nearly all of it, so that one odd pair does not make the rest a dot.
std::size_t side_of_most(const Cloud& cloud) {
  std::vector<std::uint64_t> longest(cloud.side, 0);
  for (std::size_t y = 0; y < cloud.side; ++y) {
    for (std::size_t x = 0; x < cloud.side; ++x) longest[std::max(x, y)] += cloud.cells[y * cloud.side + x];
  }
  const std::uint64_t total = sum(longest);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < cloud.side; ++i) {
    seen += longest[i];
    if (seen >= total - total / 500) return std::max<std::size_t>(i + 1, 2);
  }
  return std::max<std::size_t>(cloud.side, 2);
}

// The counts of bins of `step` lengths, `across` by `up` of them.
std::vector<std::uint64_t> binned(const Cloud& cloud, std::size_t side, std::size_t across, std::size_t up) {
  std::vector<std::uint64_t> bins(across * up, 0);
  for (std::size_t y = 0; y < std::min(side, cloud.side); ++y) {
    for (std::size_t x = 0; x < std::min(side, cloud.side); ++x) {
      bins[y * up / side * across + x * across / side] += cloud.cells[y * cloud.side + x];
    }
  }
  return bins;
}

// Between 0 and 1, by logarithm: a pair that is alone must still be seen.
double shade(std::uint64_t count, std::uint64_t most) {
  return count == 0 ? 0 : (1 + std::log(static_cast<double>(count))) / (1 + std::log(static_cast<double>(most)));
}

struct Frame {
  double left = 64, top = 36, width = 560, height = 320;
  double bottom() const { return top + height; }
};

void axes(Svg& svg, const Frame& frame, std::size_t most_across, const std::string& across) {
  svg.line(frame.left, frame.bottom(), frame.left + frame.width, frame.bottom(), "#333333");
  svg.line(frame.left, frame.top, frame.left, frame.bottom(), "#333333");
  const std::size_t step = round_step(std::max<std::size_t>(most_across, 1), 10);
  for (std::size_t at = 0; at <= most_across; at += step) {
    const double x =
        frame.left + frame.width * static_cast<double>(at) / static_cast<double>(std::max<std::size_t>(most_across, 1));
    svg.line(x, frame.bottom(), x, frame.bottom() + 4, "#333333");
    svg.words(x, frame.bottom() + 17, fmt::format("{}", at), {.anchor = "middle", .size = 11});
  }
  svg.words(frame.left + frame.width / 2, frame.bottom() + 36, across, {.anchor = "middle"});
}

}  // namespace

std::string bars(std::span<const std::uint64_t> counts, const BarSettings& settings) {
  const std::uint64_t total = sum(counts);
  std::string out = settings.title.empty() ? "" : settings.title + "\n";
  if (total == 0) return out + "  nothing to count\n";
  const std::size_t last = last_used(counts);
  const std::size_t step = round_step(last, std::max<std::size_t>(settings.rows, 1));
  struct Row {
    std::string label;
    std::uint64_t count;
  };
  std::vector<Row> rows;
  // 1–5, 6–10, …: ranges end at multiples of the step.
  for (std::size_t begin = counts[0] > 0 ? 0 : 1, end = 0; begin <= last; begin = end + 1) {
    end = std::min((begin + step - 1) / step * step, counts.size() - 1);
    const bool open = end + 1 == counts.size() && counts.back() > 0;
    rows.push_back({open           ? fmt::format("{}…", begin)
                    : end == begin ? fmt::format("{}", begin)
                                   : fmt::format("{}–{}", begin, end),
                    sum(counts.subspan(begin, end + 1 - begin))});
  }
  std::uint64_t most = 1;
  int label = 0;
  for (const Row& row : rows) {
    most = std::max(most, row.count);
    label = std::max(label, display_width(row.label));
  }
  const auto room = static_cast<double>(std::max(settings.width - label - 24, 10));
  for (const Row& row : rows) {
    auto length =
        static_cast<std::size_t>(std::llround(room * static_cast<double>(row.count) / static_cast<double>(most)));
    if (row.count > 0) length = std::max<std::size_t>(length, 1);
    const auto blanks = static_cast<std::size_t>(label - display_width(row.label));
    out += fmt::format("  {}{}  {}{}{}  {:.1f} %\n", std::string(blanks, ' '), row.label, repeated("▇", length),
                       length > 0 ? "  " : "", row.count,
                       100.0 * static_cast<double>(row.count) / static_cast<double>(total));
  }
  return out;
}

std::string bars_svg(const std::vector<BarSeries>& series, const std::string& title) {
  constexpr std::string_view kColors[] = {"#4c72b0", "#dd8452", "#55a868", "#c44e52"};
  const Frame frame;
  Svg svg(frame.left + frame.width + 24, frame.bottom() + 52);
  svg.words(frame.left + frame.width / 2, 20, title, {.anchor = "middle", .size = 14});
  std::size_t last = 1;
  std::uint64_t most = 1;
  for (const BarSeries& each : series) last = std::max(last, last_used(each.counts));
  const std::size_t step = round_step(last, 50);
  const std::size_t bins = last / step + 1;
  std::vector<std::vector<std::uint64_t>> heights;
  for (const BarSeries& each : series) {
    std::vector<std::uint64_t> bin(bins, 0);
    for (std::size_t i = 0; i <= last && i < each.counts.size(); ++i) bin[i / step] += each.counts[i];
    for (const std::uint64_t count : bin) most = std::max(most, count);
    heights.push_back(std::move(bin));
  }
  const double slot = frame.width / static_cast<double>(bins);
  const double bar = slot * 0.9 / static_cast<double>(std::max<std::size_t>(series.size(), 1));
  for (std::size_t i = 0; i < series.size(); ++i) {
    const std::string_view color = kColors[i % std::size(kColors)];
    for (std::size_t j = 0; j < bins; ++j) {
      if (heights[i][j] == 0) continue;
      const double height = frame.height * static_cast<double>(heights[i][j]) / static_cast<double>(most);
      svg.rectangle(frame.left + slot * static_cast<double>(j) + bar * static_cast<double>(i), frame.bottom() - height,
                    bar, height, color);
    }
    const double y = frame.top + 6 + 18 * static_cast<double>(i);
    svg.rectangle(frame.left + frame.width - 120, y, 12, 12, color);
    svg.words(frame.left + frame.width - 102, y + 10, series[i].name);
  }
  axes(svg, frame, bins * step, "tokens");
  svg.words(frame.left - 8, frame.top + 8, fmt::format("{}", most), {.anchor = "end", .size = 11});
  svg.words(frame.left - 8, frame.bottom(), "0", {.anchor = "end", .size = 11});
  return svg.text();
}

std::string cloud(const Cloud& cloud, int width) {
  if (sum(cloud.cells) == 0) return "  nothing to count\n";
  constexpr std::string_view kShades[] = {" ", "·", "░", "▒", "▓", "█"};
  const std::size_t side = side_of_most(cloud);
  // A cell takes two columns: then it is about as wide as high.
  const auto room = static_cast<std::size_t>(std::max(width - 12, 10)) / 2;
  const std::size_t across = std::min({side, room, std::size_t{30}});
  const std::size_t up = std::min<std::size_t>(side, 20);
  const std::vector<std::uint64_t> bins = binned(cloud, side, across, up);
  const std::uint64_t most = *std::max_element(bins.begin(), bins.end());
  std::string out = fmt::format("{:>8}\n", cloud.up);
  for (std::size_t y = up; y-- > 0;) {
    const bool named = y == up - 1 || y == 0;
    out += fmt::format("{:>8} │", named ? fmt::format("{}", y == 0 ? 0 : side - 1) : "");
    for (std::size_t x = 0; x < across; ++x) {
      const double level = shade(bins[y * across + x], std::max<std::uint64_t>(most, 1)) * (std::size(kShades) - 1);
      out += repeated(kShades[static_cast<std::size_t>(std::ceil(level - 1e-9))], 2);
    }
    while (out.ends_with(' ')) out.pop_back();
    out += '\n';
  }
  out += std::string(9, ' ') + "└" + repeated("─", 2 * across) + "\n";
  const std::string end = fmt::format("{}", side - 1);
  const std::size_t gap = 2 * across > 1 + end.size() ? 2 * across - 1 - end.size() : 1;
  out += std::string(10, ' ') + "0" + std::string(gap, ' ') + end + "  " + cloud.across + "\n";
  return out;
}

std::string cloud_svg(const Cloud& cloud, const std::string& title) {
  const Frame frame = {.width = 400, .height = 400};
  Svg svg(frame.left + frame.width + 24, frame.bottom() + 52);
  svg.words(frame.left + frame.width / 2, 20, title, {.anchor = "middle", .size = 14});
  const std::size_t side = side_of_most(cloud);
  const std::size_t count = std::min<std::size_t>(side, 100);
  const std::vector<std::uint64_t> bins = binned(cloud, side, count, count);
  const std::uint64_t most = std::max<std::uint64_t>(1, *std::max_element(bins.begin(), bins.end()));
  const double cell = frame.width / static_cast<double>(count);
  for (std::size_t y = 0; y < count; ++y) {
    for (std::size_t x = 0; x < count; ++x) {
      const double level = shade(bins[y * count + x], most);
      if (level == 0) continue;
      const auto mix = [level](double light, double dark) {
        return static_cast<int>(std::lround(light + (dark - light) * level));
      };
      svg.rectangle(frame.left + cell * static_cast<double>(x), frame.bottom() - cell * static_cast<double>(y + 1),
                    cell, cell, fmt::format("#{:02x}{:02x}{:02x}", mix(222, 8), mix(235, 48), mix(247, 107)));
    }
  }
  axes(svg, frame, side - 1, cloud.across);
  svg.words(frame.left - 8, frame.top + 8, fmt::format("{}", side - 1), {.anchor = "end", .size = 11});
  svg.words(20, frame.top + frame.height / 2, cloud.up, {.anchor = "middle", .upwards = true});
  return svg.text();
}

}  // namespace regard
