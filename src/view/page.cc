#include "view/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "base/check.h"
#include "io/json.h"
#include "view/derive.h"
#include "view/page_files.h"
#include "view/png.h"
#include "view/sound.h"
#include "view/svg.h"

namespace regard {
namespace {

constexpr std::int64_t kMostSide = 512;          // of a map that is embedded as it is
constexpr std::int64_t kMostValues = 3'000'000;  // of all maps together: 8 MB of text
constexpr std::int64_t kTop = 8;
constexpr std::int64_t kTile = 256;
constexpr std::size_t kMostTileBytes = 6'000'000;
constexpr std::int64_t kMostLabels = 20'000;  // of an axis
constexpr std::uint16_t kUnknown = 65535;
constexpr std::size_t kWavePoints = 720;
constexpr std::int64_t kMostTimes = 720, kMostBands = 128;  // of a spectrum

template <class Integer>
void put(std::string& out, Integer value) {  // least significant byte first
  for (std::size_t i = 0; i < sizeof(Integer); ++i) {
    out += static_cast<char>(static_cast<unsigned char>(value >> (8 * i) & 0xFF));
  }
}

struct Plane {
  const char* measure;
  std::int64_t layer, head;         // −1: all, the mean
  std::function<Tensor()> weights;  // made when it is written: all together may be larger than the memory
};

struct Bounds {
  double low = 0, high = 0;

  explicit Bounds(const Tensor& weights) {
    for (std::int64_t i = 0; i < weights.size(); ++i) {
      const double value = static_cast<double>(weights.data<float>()[i]);
      if (!std::isfinite(value)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
    if (high == low) high = low + 1;
  }
  std::uint16_t number(double value) const {
    if (!std::isfinite(value)) return kUnknown;
    return static_cast<std::uint16_t>(std::lround((value - low) / (high - low) * 65534));
  }
};

// The heaviest of the cells that fall on each place of a smaller grid.
Tensor reduced(const Tensor& weights, std::int64_t rows, std::int64_t columns) {
  if (rows == weights[0] && columns == weights[1]) return weights;
  Tensor out = Tensor::empty({rows, columns});
  std::fill_n(out.data<float>(), out.size(), std::nanf(""));
  for (std::int64_t row = 0; row < weights[0]; ++row) {
    const float* from = weights.data<float>() + row * weights[1];
    float* to = out.data<float>() + row * rows / weights[0] * columns;
    for (std::int64_t column = 0; column < weights[1]; ++column) {
      float& here = to[column * columns / weights[1]];
      if (std::isfinite(from[column]) && !(std::abs(from[column]) <= std::abs(here))) here = from[column];
    }
  }
  return out;
}

// The wave as pairs of signed bytes, least and largest; the spectrum as bytes, 255 for what is not known.
void write_sound(JsonWriter& out, const TraceAxis& axis) {
  std::string bytes;
  for (const Extent& extent : wave_of(axis, kWavePoints)) {
    put(bytes, static_cast<std::uint8_t>(std::lround(extent.low * 127)));
    put(bytes, static_cast<std::uint8_t>(std::lround(extent.high * 127)));
  }
  if (!bytes.empty()) out.key("wave").value(base64(bytes));
  const Tensor all = spectrum_of(axis);
  if (!all.defined()) return;
  const Tensor spectrum = reduced(all, std::min(all[0], kMostBands), std::min(all[1], kMostTimes));
  bytes.clear();
  for (std::int64_t i = 0; i < spectrum.size(); ++i) {
    const float value = spectrum.data<float>()[i];
    put(bytes, static_cast<std::uint8_t>(std::isfinite(value) ? std::lround(value * 254) : 255));
  }
  out.key("spectrum").begin_object().key("bands").value(spectrum[0]).key("times").value(spectrum[1]);
  out.key("data").value(base64(bytes)).end_object();
}

// Row after row of tiles; those at the edges are smaller. None if they take too much.
std::vector<std::string> tiles_of(const Tensor& weights, const Bounds& bounds) {
  std::vector<std::string> tiles;
  std::size_t bytes = 0;
  for (std::int64_t top_row = 0; top_row < weights[0]; top_row += kTile) {
    for (std::int64_t left = 0; left < weights[1]; left += kTile) {
      std::string cells;
      for (std::int64_t row = top_row; row < std::min(weights[0], top_row + kTile); ++row) {
        const float* from = weights.data<float>() + row * weights[1];
        for (std::int64_t column = left; column < std::min(weights[1], left + kTile); ++column) {
          const double value = static_cast<double>(from[column]);
          const long cell =
              std::isfinite(value) ? std::lround((value - bounds.low) / (bounds.high - bounds.low) * 254) : 255;
          cells += static_cast<char>(static_cast<unsigned char>(cell));
        }
      }
      tiles.push_back(base64(deflated(cells)));
      bytes += tiles.back().size();
      if (bytes > kMostTileBytes) return {};
    }
  }
  return tiles;
}

void write_plane(JsonWriter& out, const Plane& plane, const Tensor& weights, bool with_tiles) {
  const std::int64_t rows = weights[0], columns = weights[1];
  const Tensor cells = reduced(weights, std::min(rows, kMostSide), std::min(columns, kMostSide));
  const Bounds bounds(weights);
  std::string bytes;
  for (std::int64_t i = 0; i < cells.size(); ++i) {
    put(bytes, bounds.number(static_cast<double>(cells.data<float>()[i])));
  }
  out.begin_object().key("measure").value(plane.measure).key("layer").value(plane.layer).key("head").value(plane.head);
  out.key("rows").value(cells[0]).key("columns").value(cells[1]);
  out.key("low").value(bounds.low).key("high").value(bounds.high).key("data").value(base64(bytes));
  if (cells.size() < weights.size()) {
    std::string places, values;
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::vector<TopWeight> best = top(weights, row, kTop);
      for (std::size_t k = 0; k < static_cast<std::size_t>(kTop); ++k) {
        const bool is_there = k < best.size();
        put(places, static_cast<std::uint32_t>(is_there ? best[k].column : 0));
        put(values, is_there ? bounds.number(static_cast<double>(best[k].weight)) : kUnknown);
      }
    }
    out.key("top").begin_object().key("k").value(kTop);
    out.key("columns").value(base64(places)).key("values").value(base64(values)).end_object();
    const std::vector<std::string> tiles = with_tiles ? tiles_of(weights, bounds) : std::vector<std::string>();
    if (!tiles.empty()) {
      out.key("side").value(kTile).key("tiles").begin_array();
      for (const std::string& tile : tiles) out.value(tile);
      out.end_array();
    }
  }
  out.end_object();
}

void write_axis(JsonWriter& out, const TraceAxis& axis) {
  constexpr const char* kKinds[] = {"tokens", "grid", "boxes", "frames"};
  out.begin_object().key("kind").value(kKinds[static_cast<int>(axis.kind)]).key("size").value(axis.size());
  out.key("labels").begin_array();
  for (std::int64_t i = 0; i < std::min(axis.size(), kMostLabels); ++i) out.value(shown(axis.label(i)));
  out.end_array();
  if (axis.kind == TraceAxis::Kind::kGrid || axis.kind == TraceAxis::Kind::kBoxes) {
    out.key("rows").value(axis.rows).key("columns").value(axis.columns);
    out.key("height").value(axis.height).key("width").value(axis.width);
    out.key("boxes").begin_array();
    for (const TraceBox& box : axis.boxes) {
      out.begin_array().value(box.left).value(box.top).value(box.right).value(box.bottom).end_array();
    }
    out.end_array();
    if (axis.picture.defined() && axis.picture.size() > 0) out.key("picture").value(data_address(photo(axis, 360)));
  }
  if (axis.kind == TraceAxis::Kind::kFrames) write_sound(out, axis);
  out.end_object();
}

// In the order in which they are wanted most: what does not fit is left out from the end.
std::vector<Plane> planes_of(const TraceItem& item, const TraceMap& map) {
  std::vector<Plane> planes;
  const auto add = [&](const char* measure, const std::shared_ptr<const TraceMap>& of, bool heads) {
    for (std::int64_t layer = map.weights[0] - 1; layer >= 0; --layer) {
      for (std::int64_t head = heads ? 0 : -1; head < (heads ? map.weights[1] : 0); ++head) {
        planes.push_back({measure, layer, head, [=] { return weights_of(*of, layer, head); }});
      }
    }
  };
  if (map.weights[0] == 0 || map.weights[1] == 0) return planes;
  const auto same = std::make_shared<const TraceMap>(map);  // shares the weights
  add("weights", same, false);
  add("weights", same, true);
  if (map.weights[2] > 2 * kMostSide || map.weights[3] > 2 * kMostSide) return planes;  // a rollout would take long
  if (map.rows == map.columns) {
    planes.push_back({"rollout", -1, -1, [=] { return rollout(*same); }});
  } else {
    for (const TraceMap& other : item.maps) {
      if (other.rows != map.columns || other.columns != map.columns || other.weights[0] == 0) continue;
      for (std::int64_t layer = map.weights[0] - 1; layer >= 0; --layer) {
        planes.push_back({"rollout", layer, -1, [=] { return rollout(other, weights_of(*same, layer, -1)); }});
      }
      break;
    }
  }
  if (map.norms.defined() && map.norms.size() > 0) {
    auto by_norms = std::make_shared<TraceMap>(map);
    by_norms->weights = norm_weighted(map);
    add("norms", by_norms, false);
    add("norms", by_norms, true);
  }
  return planes;
}

std::string data_of(const Trace& trace, const MapChoice& choice) {
  const TraceItem& item = item_of(trace, choice);
  const TraceChoice said = choice_of(item);
  JsonWriter out;
  out.begin_object().key("title").value(shown(item.title.empty() ? "attention" : item.title));
  out.key("erasure").value(item.erasure ? erasure_text(*item.erasure) : std::string());
  out.key("axes").begin_object();
  for (const TraceAxis& axis : item.axes) {
    out.key(shown(axis.name));
    write_axis(out, choice.words ? to_words(axis) : axis);
  }
  out.end_object();

  const std::string& first = choice.map.empty() ? said.map : choice.map;
  std::int64_t room = kMostValues, left_out = 0, number = 0, chosen = 0;
  out.key("maps").begin_array();
  for (const TraceMap& map : item.maps) {
    if (map.name == first) chosen = number;
    ++number;
    out.begin_object().key("name").value(shown(map.name));
    out.key("rows").value(shown(map.rows)).key("columns").value(shown(map.columns)).key("planes").begin_array();
    std::vector<Plane> planes = planes_of(item, map);
    const std::int64_t layer = map.name == said.map && !choice.layer ? said.layer : choice.layer.value_or(-1);
    const std::int64_t head = map.name == said.map && !choice.head ? said.head : choice.head.value_or(-1);
    std::stable_partition(planes.begin(), planes.end(), [&](const Plane& plane) {
      return std::string_view(plane.measure) == "weights" && plane.layer == layer && plane.head == head;
    });
    const TraceAxis &rows = item.axis(map.rows), &columns = item.axis(map.columns);
    const std::int64_t high = (choice.words ? to_words(rows) : rows).size();
    const std::int64_t wide = (choice.words ? to_words(columns) : columns).size();
    const std::int64_t values =
        std::min(high, kMostSide) * std::min(wide, kMostSide) + (std::max(high, wide) > kMostSide ? high * 24 : 0);
    for (std::size_t i = 0; i < planes.size(); ++i) {
      if (i > 0 && values > room) {
        ++left_out;
        continue;
      }
      room -= values;
      const Tensor weights = planes[i].weights();
      write_plane(out, planes[i], choice.words ? to_words(weights, rows, columns) : weights,
                  i == 0 && map.name == first);
    }
    out.end_array().end_object();
  }
  out.end_array();
  const TraceMap& map = map_of(item, choice);
  const bool as_said = map.name == said.map;
  std::int64_t layer = choice.layer.value_or(as_said ? said.layer : -1);
  if (layer < 0) layer = map.weights[0] - 1;
  out.key("first").begin_object().key("map").value(chosen).key("layer").value(layer);
  out.key("head").value(choice.head.value_or(as_said ? said.head : -1)).end_object();
  out.key("note").value(left_out == 0 ? std::string()
                                      : text(left_out, " maps of layers and heads are left out: too large for a page"));
  out.end_object();
  return out.text();
}

// A text cannot end the element it stands in: "</script>" has a "<".
std::string for_script(const std::string& json) {
  std::string out;
  for (const char letter : json) {
    if (letter == '<') {
      out += "\\u003c";
    } else {
      out += letter;
    }
  }
  return out;
}

}  // namespace

std::string page(const Trace& trace, const MapChoice& choice) {
  const std::string title = item_of(trace, choice).title;
  return fmt::format(
      R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{}</title>
<style>
{}</style>
</head>
<body>
<h1 id="title" dir="auto"></h1>
<p id="erasure"></p>
<p class="faint" id="left-out"></p>
<form onsubmit="return false">
<label>map <select id="choose-map"></select></label>
<label>by <select id="choose-measure"></select></label>
<label>layer <select id="choose-layer"></select></label>
<label>head <select id="choose-head"></select></label>
</form>
<p class="faint">rows</p>
<div class="words" id="rows"></div>
<p class="faint">columns</p>
<div class="words" id="columns"></div>
<p id="value" aria-live="polite"></p>
<div id="side">
<div id="scroll"><canvas id="sound" hidden></canvas><canvas id="map" tabindex="0" role="img" aria-label="the map; arrow keys move from cell to cell"></canvas></div>
<div><canvas id="lens" width="246" height="246" hidden></canvas><canvas id="picture" hidden></canvas><p class="faint" id="whose"></p><ol id="heaviest"></ol></div>
</div>
<script type="application/json" id="data">{}</script>
<script>
{}</script>
</body>
</html>
)",
      svg_escape(title.empty() ? "attention" : title), kPageStyle, for_script(data_of(trace, choice)), kPageScript);
}

}  // namespace regard
