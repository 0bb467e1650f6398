#include "view/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/check.h"
#include "io/json.h"
#include "view/derive.h"
#include "view/page.h"

namespace regard {
namespace {

constexpr std::pair<std::string_view, View> kViews[] = {
    {"matrix", View::kMatrix}, {"lines", View::kLines},     {"heads", View::kHeads},
    {"row", View::kRow},       {"image", View::kImage},     {"sound", View::kSound},
    {"text", View::kText},     {"entropy", View::kEntropy}, {"difference", View::kDifference}};
constexpr std::pair<std::string_view, ShowFormat> kFormats[] = {
    {".svg", ShowFormat::kSvg}, {".png", ShowFormat::kPng},   {".pdf", ShowFormat::kPdf}, {".html", ShowFormat::kHtml},
    {".txt", ShowFormat::kTxt}, {".json", ShowFormat::kJson}, {".npy", ShowFormat::kNpy}};

template <class Table>
std::string listed(const Table& table) {
  std::string names;
  for (const auto& [name, value] : table) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

Shown shown_map(const Trace& trace, const ShowSettings& settings) {
  if (settings.view == View::kDifference) {
    check(settings.other != nullptr, "a difference needs a second trace (--with)");
    return choose_difference(trace, *settings.other, settings.choice);
  }
  Shown map = choose(trace, settings.choice);
  map.links = settings.links;
  for (const auto& [row, column] : map.links) {
    check(row < map.rows.size() && column < map.columns.size(), "--links ", column, "-", row,
          " is outside of the map: it has ", map.columns.size(), " columns and ", map.rows.size(), " rows");
  }
  return map;
}

std::optional<std::int64_t> row_asked(const Shown& map, const ShowSettings& settings) {
  if (settings.token.empty()) return std::nullopt;
  return row_number(map, settings.token);
}

std::int64_t row_or_first(const Shown& map, const ShowSettings& settings) {
  return row_asked(map, settings).value_or(0);
}

// About all heads, not about the one that would be chosen.
Shown about_heads(const Trace& trace, const ShowSettings& settings, const char* what) {
  Shown map = choose(trace, settings.choice);
  const TraceMap& all = map_of(item_of(trace, settings.choice), settings.choice);
  map.note = text(all.name, ", ", what, settings.choice.norms ? ", by norms of values" : "", " · rows: ", all.rows,
                  ", columns: ", all.columns);
  return map;
}

Tensor entropies_of(const Trace& trace, const ShowSettings& settings) {
  TraceMap map = map_of(item_of(trace, settings.choice), settings.choice);
  map.weights = choose_all(trace, settings.choice);
  return entropies(map);
}

double largest(const Tensor& weights) {
  double most = 0;
  for (std::int64_t i = 0; i < weights.size(); ++i) {
    const double value = std::abs(static_cast<double>(weights.data<float>()[i]));
    if (std::isfinite(value)) most = std::max(most, value);
  }
  return most > 0 ? most : 1;
}

std::vector<std::string> labels(const TraceAxis& axis) {
  std::vector<std::string> out;
  for (std::int64_t i = 0; i < axis.size(); ++i) out.push_back(axis.label(i));
  return out;
}

std::string heading(const Shown& map) {
  std::string out;
  const auto line = [&out](const std::string& words) {
    if (!words.empty()) out += shown(words) + '\n';
  };
  line(map.title);
  line(map.note);
  if (map.erasure) line(erasure_text(*map.erasure));
  return out + '\n';
}

std::string matrix_text(const Shown& map, const MapSettings& how) {
  constexpr std::int64_t kMost = 200;  // rows or columns; of longer maps the heaviest of each row are told
  MapSettings settings = how;
  settings.difference = map.difference;
  std::string out = heading(map);
  if (map.weights.size() == 0) {
    return out + text("nothing to show: ", map.weights[0], " rows, ", map.weights[1], " columns\n");
  }
  if (map.weights[0] > kMost || map.weights[1] > kMost) {
    for (std::int64_t row = 0; row < map.weights[0]; ++row) {
      out += fmt::format("{} {} →", row, printable(map.rows.label(row)));
      for (const TopWeight& each : top(map.weights, row, 3)) {
        out += fmt::format("  {} {} {}", each.column, printable(map.columns.label(each.column)),
                           weight_text(static_cast<double>(each.weight)));
      }
      out += '\n';
    }
    return out;
  }
  const double most = largest(map.weights);
  bool below = false;
  Tensor scaled = map.weights.clone();
  for (std::int64_t i = 0; i < scaled.size(); ++i) {
    float& value = scaled.data<float>()[i];
    value = std::isfinite(value) ? static_cast<float>(static_cast<double>(value) / most) : std::nanf("");
    below = below || value < 0;
  }
  settings.difference = settings.difference || below;
  const std::vector<std::string> rows = labels(map.rows), columns = labels(map.columns);
  out += heat_map(scaled, {.rows = rows, .columns = columns}, settings);
  out += "\n  " +
         heat_scale(settings.colors, settings.difference ? weight_text(-most) : "0", weight_text(most),
                    settings.difference) +
         '\n';
  return out;
}

std::string text_text(const Shown& map, std::optional<std::int64_t> row, const MapSettings& how) {
  std::string out = heading(map);
  if (map.weights.size() == 0) return out + "nothing to show\n";
  const std::vector<double> weights = row ? row_of(map.weights, *row) : mean_row(map.weights);
  double most = 0;
  for (const double weight : weights) most = std::isfinite(weight) ? std::max(most, std::abs(weight)) : most;
  if (most == 0) most = 1;
  MapSettings settings = how;
  settings.difference = map.difference;
  std::vector<ShadedPart> parts;
  for (const TokenPart& part : text_parts(map.columns)) {
    const double weight = part.token < 0 ? std::nan("") : weights[static_cast<std::size_t>(part.token)] / most;
    parts.push_back({part.text, std::isfinite(weight) ? weight : std::nan("")});
  }
  if (row) out += text("  ", printable(map.rows.label(*row)), " →\n\n");
  return out + shaded_text(parts, settings) + "\n  " +
         heat_scale(settings.colors, settings.difference ? weight_text(-most) : "0", weight_text(most),
                    settings.difference) +
         '\n';
}

std::string row_text(const Shown& map, std::int64_t row, const MapSettings& settings) {
  std::string out = text_text(map, row, settings) + '\n';
  if (map.weights.size() == 0) return out;
  const double most = largest(map.weights.slice(0, row, row + 1).clone());
  const int room = std::max(8, std::min(60, settings.width - 40));
  for (const TopWeight& each : top(map.weights, row, 20)) {
    const double weight = static_cast<double>(each.weight);
    std::string name = printable(map.columns.label(each.column));
    const int pad = std::max(0, 16 - display_width(name));
    std::string bar;
    for (int i = 0; i < static_cast<int>(std::lround(std::abs(weight) / most * room)); ++i) bar += "▇";
    out += fmt::format("  {}{} {:>7} {}\n", std::string(static_cast<std::size_t>(pad), ' '), name, weight_text(weight),
                       bar);
  }
  return out;
}

std::string entropy_text(const Shown& map, const Tensor& entropy) {
  std::string out = heading(map) + std::string(10, ' ');
  for (std::int64_t head = 0; head < entropy[1]; ++head) out += fmt::format("{:>9}", text("head ", head));
  out += '\n';
  for (std::int64_t layer = 0; layer < entropy[0]; ++layer) {
    out += fmt::format("{:>10}", text("layer ", layer));
    for (std::int64_t head = 0; head < entropy[1]; ++head) {
      out += fmt::format("{:>9}", weight_text(static_cast<double>(entropy.data<float>()[layer * entropy[1] + head])));
    }
    out += '\n';
  }
  return out;
}

std::string as_text(const Trace& trace, const ShowSettings& settings, const MapSettings& how) {
  switch (settings.view) {
    case View::kMatrix:
    case View::kDifference:
      return matrix_text(shown_map(trace, settings), how);
    case View::kText: {
      const Shown map = shown_map(trace, settings);
      return text_text(map, row_asked(map, settings), how);
    }
    case View::kRow: {
      const Shown map = shown_map(trace, settings);
      return row_text(map, row_or_first(map, settings), how);
    }
    case View::kEntropy:
      return entropy_text(about_heads(trace, settings, "entropy of every head, in nats"),
                          entropies_of(trace, settings));
    case View::kLines:
    case View::kHeads:
    case View::kImage:
    case View::kSound:
      break;
  }
  for (const auto& [name, view] : kViews) {
    check(view != settings.view, "the view '", name, "' is a picture: name a file of it, as in -o map.svg");
  }
  return "";
}

std::string as_json(const Trace& trace, const ShowSettings& settings) {
  const Shown map = shown_map(trace, settings);
  JsonWriter out;
  out.begin_object().key("title").value(shown(map.title)).key("about").value(shown(map.note));
  if (map.erasure) {
    out.key("erasure").begin_object();
    out.key("most").value(map.erasure->most).key("random").value(map.erasure->random);
    out.key("words").value(map.erasure->words).end_object();
  }
  const auto list = [&out](const char* name, const TraceAxis& axis) {
    out.key(name).begin_array();
    for (const std::string& label : labels(axis)) out.value(label);
    out.end_array();
  };
  list("rows", map.rows);
  list("columns", map.columns);
  out.key("weights").begin_array();
  const float* values = map.weights.size() > 0 ? map.weights.data<float>() : nullptr;
  for (std::int64_t row = 0; row < map.weights[0]; ++row) {
    out.begin_array();
    for (std::int64_t column = 0; column < map.weights[1]; ++column) {
      out.value(static_cast<double>(values[row * map.weights[1] + column]));
    }
    out.end_array();
  }
  out.end_array().end_object();
  return out.text() + '\n';
}

Tensor numbers_of(const Trace& trace, const ShowSettings& settings) {
  if (settings.view == View::kHeads) return choose_all(trace, settings.choice);
  if (settings.view == View::kEntropy) return entropies_of(trace, settings);
  return shown_map(trace, settings).weights;
}

}  // namespace

View view_of(std::string_view name) {
  for (const auto& [known, view] : kViews) {
    if (known == name) return view;
  }
  fail(ErrorKind::kInput, "unknown view '", name, "': known are ", listed(kViews));
}

ShowFormat format_of_ending(const std::string& path) {
  for (const auto& [ending, format] : kFormats) {
    if (path.size() > ending.size() && path.ends_with(ending)) return format;
  }
  fail(ErrorKind::kInput, "'", path, "': the format is told by the ending: ", listed(kFormats));
}

std::string npy(const Tensor& tensor) {
  std::string shape;
  for (int i = 0; i < tensor.rank(); ++i) shape += text(tensor[i], i == 0 || i + 1 < tensor.rank() ? ", " : "");
  std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + "), }";
  constexpr std::size_t kBefore = 10, kAlign = 64;
  head += std::string(kAlign - (kBefore + head.size() + 1) % kAlign, ' ') + '\n';
  std::string out = "\x93NUMPY";
  out += '\1';
  out += '\0';
  out += static_cast<char>(static_cast<unsigned char>(head.size() & 0xFF));
  out += static_cast<char>(static_cast<unsigned char>(head.size() >> 8));
  out += head;
  const Tensor dense = tensor.to(DType::kF32);
  if (dense.size() > 0) out.append(reinterpret_cast<const char*>(dense.raw()), dense.bytes());
  return out;
}

Canvas picture_of(const Trace& trace, const ShowSettings& settings) {
  const PictureSettings look{.theme = settings.theme};
  switch (settings.view) {
    case View::kMatrix:
    case View::kDifference:
      return matrix_picture(shown_map(trace, settings), look);
    case View::kLines:
      return lines_picture(shown_map(trace, settings), look);
    case View::kHeads:
      return heads_picture(about_heads(trace, settings, "all layers and heads"), choose_all(trace, settings.choice),
                           look);
    case View::kEntropy:
      return entropy_picture(about_heads(trace, settings, "entropy of every head, in nats"),
                             entropies_of(trace, settings), look);
    case View::kRow: {
      const Shown map = shown_map(trace, settings);
      return row_picture(map, row_or_first(map, settings), look);
    }
    case View::kText: {
      const Shown map = shown_map(trace, settings);
      return text_picture(map, row_asked(map, settings), look);
    }
    case View::kImage: {
      const Shown map = shown_map(trace, settings);
      return image_picture(map, row_asked(map, settings), look);
    }
    case View::kSound:
      return sound_picture(shown_map(trace, settings), look);
  }
  fail(ErrorKind::kInternal, "a view without a picture");
}

std::string show(const Trace& trace, const ShowSettings& settings, ShowFormat format) {
  switch (format) {
    case ShowFormat::kTerminal:
      return as_text(trace, settings, settings.terminal);
    case ShowFormat::kTxt:
      return as_text(trace, settings, {.colors = Colors::kNone, .width = 120});
    case ShowFormat::kSvg:
      return picture_of(trace, settings).svg();
    case ShowFormat::kPng:
      return picture_of(trace, settings).png();
    case ShowFormat::kPdf:
      return picture_of(trace, settings).pdf();
    case ShowFormat::kHtml:
      return page(trace, settings.choice);
    case ShowFormat::kJson:
      return as_json(trace, settings);
    case ShowFormat::kNpy:
      return npy(numbers_of(trace, settings));
  }
  fail(ErrorKind::kInternal, "a format without a writer");
}

}  // namespace regard
