#include "view/choose.h"

#include <algorithm>

#include "base/check.h"
#include "view/derive.h"

namespace regard {
namespace {

std::string names_of(const TraceItem& item) {
  std::string names;
  for (const TraceMap& map : item.maps) names += (names.empty() ? "'" : ", '") + map.name + "'";
  return names;
}

// With the numbers that were asked for instead of those the trace would choose.
struct Place {
  std::int64_t layer = -1, head = -1;
};

void check_place(const TraceMap& map, const Place& place) {
  const auto within = [&](std::int64_t number, std::int64_t count, const char* what) {
    check(number < count, "no ", what, " ", number, " in map '", map.name, "': it has ", count,
          count == 1 ? text(" ", what) : text(" ", what, "s, 0 to ", count - 1));
  };
  within(place.layer, map.weights[0], "layer");
  within(place.head, map.weights[1], "head");
}

TraceMap weighted(const TraceMap& map, const MapChoice& choice) {
  TraceMap out = map;
  if (choice.norms) {
    check(map.norms.defined() && map.norms.size() > 0, "map '", map.name,
          "' has no norms of values: --norms needs a trace that holds them (--trace-maps norms)");
    out.weights = norm_weighted(map);
  }
  return out;
}

Tensor rolled_out(const TraceItem& item, const TraceMap& map, const Tensor& weights) {
  if (map.rows == map.columns) return rollout(map);
  for (const TraceMap& other : item.maps) {
    if (other.rows == map.columns && other.columns == map.columns) return rollout(other, weights);
  }
  fail(ErrorKind::kInput, "map '", map.name, "' cannot be rolled out: no map of the trace is over '", map.columns,
       "' alone (--trace-maps all writes that of an encoder)");
}

}  // namespace

const TraceItem& item_of(const Trace& trace, const MapChoice& choice) {
  const auto count = static_cast<std::int64_t>(trace.items.size());
  check(count > 0, "the trace has no items");
  check(choice.item >= 0 && choice.item < count, "no item ", choice.item, ": the trace has ", count,
        count == 1 ? " item" : text(" items, 0 to ", count - 1));
  return trace.items[static_cast<std::size_t>(choice.item)];
}

const TraceMap& map_of(const TraceItem& item, const MapChoice& choice) {
  check(!item.maps.empty(), "the item '", item.title, "' has no maps: a model without attention looks nowhere");
  const std::string name = choice.map.empty() ? choice_of(item).map : choice.map;
  for (const TraceMap& map : item.maps) {
    if (map.name == name) return map;
  }
  fail(ErrorKind::kInput, "no map '", name, "' in the trace: it has ", names_of(item),
       name == "encoder" || name == "decoder" ? " (--trace-maps all writes more)" : "");
}

Shown choose(const Trace& trace, const MapChoice& choice) {
  const TraceItem& item = item_of(trace, choice);
  const TraceMap& map = map_of(item, choice);
  const TraceChoice said = choice_of(item);
  const bool asked = choice.layer || choice.head || choice.norms || choice.rollout || map.name != said.map;
  check(map.weights[0] > 0 && map.weights[1] > 0, "map '", map.name, "' has ", map.weights[0], " layers of ",
        map.weights[1], " heads: nothing to show");
  Shown out{
      .title = item.title, .rows = item.axis(map.rows), .columns = item.axis(map.columns), .erasure = item.erasure};
  if (!asked) {
    out.weights = chosen_map(item);
  } else {
    const Place place = {choice.layer.value_or(-1), choice.head.value_or(-1)};
    check_place(map, place);
    out.weights = weights_of(weighted(map, choice), place.layer, place.head);
    if (choice.rollout) out.weights = rolled_out(item, map, out.weights);
  }
  std::int64_t layer = asked ? choice.layer.value_or(-1) : said.layer;
  const std::int64_t head = asked ? choice.head.value_or(-1) : said.head;
  if (layer < 0) layer = map.weights[0] - 1;
  const bool all_layers = choice.rollout && map.rows == map.columns;
  out.note = all_layers ? text(map.name, ", rollout of ", map.weights[0], " layers")
                        : text(map.name, ", layer ", layer, head < 0 ? ", mean of heads" : text(", head ", head),
                               choice.rollout ? ", rolled out" : "", choice.norms ? ", by norms of values" : "");
  out.note += text(" · rows: ", map.rows, ", columns: ", map.columns);
  if (choice.words) {
    out.weights = to_words(out.weights, out.rows, out.columns);
    out.rows = to_words(out.rows);
    out.columns = to_words(out.columns);
  }
  out.weights = out.weights.clone();
  return out;
}

Tensor choose_all(const Trace& trace, const MapChoice& choice) {
  const TraceItem& item = item_of(trace, choice);
  const TraceMap map = weighted(map_of(item, choice), choice);
  check(!choice.rollout, "all heads cannot be shown rolled out: a rollout is of all of them");
  if (!choice.words) return map.weights.clone();
  const TraceAxis rows = item.axis(map.rows), columns = item.axis(map.columns);
  const std::int64_t layers = map.weights[0], heads = map.weights[1];
  Tensor out = Tensor::empty({layers, heads, to_words(rows).size(), to_words(columns).size()});
  float* to = out.data<float>();
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    for (std::int64_t head = 0; head < heads; ++head) {
      const Tensor words = to_words(weights_of(map, layer, head), rows, columns);
      to = std::copy_n(words.data<float>(), words.size(), to);
    }
  }
  return out;
}

Shown choose_difference(const Trace& trace, const Trace& other, const MapChoice& choice) {
  Shown out = choose(trace, choice);
  const Shown second = choose(other, choice);
  check(out.weights.shape() == second.weights.shape(), "the difference of maps of ", out.weights.shape(), " and ",
        second.weights.shape(), ": expected as many rows and columns");
  out.weights = difference(out.weights, second.weights);
  out.difference = true;
  out.erasure.reset();  // of one of the two
  out.note = "difference: " + out.note;
  return out;
}

std::int64_t row_number(const Shown& map, const std::string& token) {
  const std::int64_t count = map.rows.size();
  const auto bare = [](std::string label) {
    if (label.starts_with("▁")) label.erase(0, std::string_view("▁").size());
    return label;
  };
  for (std::int64_t i = 0; i < count; ++i) {
    if (bare(map.rows.label(i)) == bare(token)) return i;
  }
  const bool number = !token.empty() && token.size() < 10 && token.find_first_not_of("0123456789") == std::string::npos;
  check(number, "no row '", token, "': the rows are '", map.rows.name, "', and none is called so");
  const std::int64_t row = std::stoll(token);
  check(row < count, "no row ", row, ": '", map.rows.name, "' has ", count,
        count == 0 ? "" : text(", 0 to ", count - 1));
  return row;
}

}  // namespace regard
