// How often something is how long: bars and a cloud, for a terminal and as SVG.
//
//     fmt::print("{}", bars(counts, {.title = "source", .width = 80}));
//       1–5  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇  10412  41.6 %
//      6–10  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇  12020  48.1 %
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace regard {

// counts[n]: how many have length n; the last: how many are as long or longer.
struct BarSettings {
  std::string title = {};
  int width = 80;  // columns
  std::size_t rows = 12;
};
std::string bars(std::span<const std::uint64_t> counts, const BarSettings& settings);

struct BarSeries {
  std::string name;
  std::vector<std::uint64_t> counts;
};
std::string bars_svg(const std::vector<BarSeries>& series, const std::string& title);

// cells[y · side + x]: how many pairs have source length x and target length y, both below `side`.
struct Cloud {
  std::size_t side = 0;
  std::vector<std::uint64_t> cells = {};
  std::string across = "source", up = "target";
};
std::string cloud(const Cloud& cloud, int width);
std::string cloud_svg(const Cloud& cloud, const std::string& title);

}  // namespace regard
