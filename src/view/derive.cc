#include "view/derive.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/check.h"
#include "models/attention_maps.h"
#include "regard/autograd/ops.h"

namespace regard {
namespace {

constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

void check_map(const char* what, const Tensor& map, int rank) {
  check(map.defined() && map.dtype() == DType::kF32 && map.rank() == rank && map.is_dense(), what, ": a map ", map,
        ", expected a dense one of f32 with ", rank, " dimensions");
}

// ½·W + ½·I of one layer, [n, n].
Tensor mixed(const TraceMap& map, std::int64_t layer) {
  Tensor made = weights_of(map, layer, -1);
  const std::int64_t n = made[0];
  for (std::int64_t row = 0; row < n; ++row) {
    float* const values = made.data<float>() + row * n;
    const bool empty = std::all_of(values, values + n, [](float value) { return value == 0; });
    for (std::int64_t i = 0; i < n; ++i) values[i] *= 0.5f;
    values[row] += empty ? 1.0f : 0.5f;
  }
  return made;
}

void check_square(const TraceMap& map) {
  check_map("rollout", map.weights, 4);
  check(map.weights[2] == map.weights[3], "rollout: a map ", map.weights, ", expected as many rows as columns");
}

// Which place each token goes to, and how many there are.
struct Places {
  std::vector<std::size_t> of;
  std::size_t count = 0;
};

Places places_of(const TraceAxis& axis) {
  Places made;
  if (axis.kind != TraceAxis::Kind::kTokens) {
    made.count = static_cast<std::size_t>(axis.size());
    made.of.resize(made.count);
    std::iota(made.of.begin(), made.of.end(), std::size_t{0});
    return made;
  }
  std::map<std::int64_t, std::size_t> words;
  for (const TraceToken& token : axis.tokens) {
    const auto [at, fresh] = token.word < 0 ? std::pair(words.end(), true) : words.emplace(token.word, made.count);
    made.of.push_back(fresh ? made.count : at->second);
    made.count += fresh ? 1 : 0;
  }
  return made;
}

}  // namespace

Tensor weights_of(const TraceMap& map, std::int64_t layer, std::int64_t head) {
  return map_of(map.weights, {.layer = layer, .head = head});
}

TraceChoice choice_of(const TraceItem& item) {
  if (item.choice) return *item.choice;
  check(!item.maps.empty(), "trace: there is no map to look at");
  return {.map = item.maps[0].name, .layer = item.maps[0].weights[0] - 1};
}

Tensor shifted(const Tensor& map, std::int64_t shift) {
  if (shift == 0 || map.size() == 0) return map;
  Tensor made = Tensor::empty(map.shape());
  const std::int64_t rows = map[0], known = rows - std::min(shift, rows);
  made.slice(0, 0, known).copy_from(map.slice(0, rows - known, rows));
  std::fill(made.data<float>() + known * map[1], made.data<float>() + map.size(), kUnknown);
  return made;
}

Tensor chosen_map(const TraceItem& item) {
  const TraceChoice choice = choice_of(item);
  return shifted(weights_of(item.map(choice.map), choice.layer, choice.head), choice.shift);
}

Tensor rollout(const TraceMap& encoder) {
  check_square(encoder);
  const std::int64_t n = encoder.weights[2];
  Tensor identity = Tensor::zeros({n, n});
  for (std::int64_t i = 0; i < n; ++i) identity.data<float>()[i * n + i] = 1;
  return rollout(encoder, identity);
}

Tensor rollout(const TraceMap& encoder, const Tensor& cross) {
  check_square(encoder);
  check_map("rollout", cross, 2);
  check(cross[1] == encoder.weights[3], "rollout: a map ", cross, " through one of ", encoder.weights);
  Tensor made = cross.clone();
  for (std::int64_t layer = encoder.weights[0]; layer > 0; --layer) {  // from the left: rows stay few
    Tape tape;
    made = matmul(tape.constant(made), tape.constant(mixed(encoder, layer - 1))).value().clone();
  }
  return made;
}

Tensor norm_weighted(const TraceMap& map) {
  check_map("norms", map.weights, 4);
  check(map.norms.defined(), "trace: map '", map.name, "' has no norms");
  Tensor made = map.weights.clone();
  const std::int64_t rows = made[2], columns = made[3];
  for (std::int64_t head = 0; head < made[0] * made[1]; ++head) {
    const float* const norms = map.norms.data<float>() + head * columns;
    for (std::int64_t row = 0; row < rows; ++row) {
      float* const values = made.data<float>() + (head * rows + row) * columns;
      double sum = 0;
      for (std::int64_t i = 0; i < columns; ++i) {
        // What is not looked at counts for nothing, however long it is, or unknown.
        values[i] = values[i] == 0 ? 0 : values[i] * norms[i];
        sum += static_cast<double>(values[i]);
      }
      if (sum == 0) continue;
      for (std::int64_t i = 0; i < columns; ++i) {
        values[i] = static_cast<float>(static_cast<double>(values[i]) / sum);
      }
    }
  }
  return made;
}

double entropy(std::span<const float> row) {
  double sum = 0;
  for (const float weight : row) {
    if (!(weight >= 0)) return std::nan("");
    sum += static_cast<double>(weight);
  }
  if (sum == 0) return std::nan("");
  double made = 0;
  for (const float weight : row) {
    const double p = static_cast<double>(weight) / sum;
    if (p > 0) made -= p * std::log(p);
  }
  return made;
}

Tensor entropies(const TraceMap& map) {
  check_map("entropy", map.weights, 4);
  const Tensor& all = map.weights;
  Tensor made = Tensor::zeros({all[0], all[1]});
  const auto rows = static_cast<std::size_t>(all[2]), columns = static_cast<std::size_t>(all[3]);
  for (std::size_t head = 0; head < static_cast<std::size_t>(made.size()); ++head) {
    double sum = 0;
    int known = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      const double one = entropy({all.data<float>() + (head * rows + row) * columns, columns});
      if (std::isnan(one)) continue;
      sum += one;
      ++known;
    }
    made.data<float>()[head] = known == 0 ? kUnknown : static_cast<float>(sum / known);
  }
  return made;
}

Tensor difference(const Tensor& a, const Tensor& b) {
  check_map("difference", a, a.rank());
  check_map("difference", b, a.rank());
  check(a.shape() == b.shape(), "difference: maps of ", a.shape(), " and ", b.shape());
  Tensor made = a.clone();
  for (std::int64_t i = 0; i < a.size(); ++i) made.data<float>()[i] -= b.data<float>()[i];
  return made;
}

std::vector<TopWeight> top(const Tensor& map, std::int64_t row, std::int64_t k) {
  check_map("top", map, 2);
  check(row >= 0 && row < map[0], "top: there is no row ", row, " of ", map[0]);
  std::vector<TopWeight> made;
  for (std::int64_t i = 0; i < map[1]; ++i) {
    const float weight = map.data<float>()[row * map[1] + i];
    if (!std::isnan(weight)) made.push_back({i, weight});
  }
  const auto count = std::min(made.size(), static_cast<std::size_t>(std::max<std::int64_t>(k, 0)));
  std::partial_sort(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(count), made.end(),
                    [](const TopWeight& a, const TopWeight& b) {
                      return a.weight != b.weight ? a.weight > b.weight : a.column < b.column;
                    });
  made.resize(count);
  return made;
}

TraceAxis to_words(const TraceAxis& axis) {
  if (axis.kind != TraceAxis::Kind::kTokens) return axis;
  const Places places = places_of(axis);
  TraceAxis made{.name = axis.name, .text = axis.text};
  made.tokens.resize(places.count);
  std::vector<bool> begun(places.count, false);
  for (std::size_t i = 0; i < axis.tokens.size(); ++i) {
    const TraceToken& token = axis.tokens[i];
    TraceToken& word = made.tokens[places.of[i]];
    const bool first = !begun[places.of[i]];
    begun[places.of[i]] = true;
    word.word = token.word;
    word.text += token.text;
    if (token.begin == token.end && !first) continue;  // it stands for no text
    const bool empty = first || word.begin == word.end;
    word.begin = empty ? token.begin : std::min(word.begin, token.begin);
    word.end = empty ? token.end : std::max(word.end, token.end);
  }
  for (TraceToken& word : made.tokens) {  // as it is written, where that is known
    if (word.word >= 0 && word.begin < word.end) word.text = axis.text.substr(word.begin, word.end - word.begin);
  }
  return made;
}

Tensor to_words(const Tensor& map, const TraceAxis& rows, const TraceAxis& columns) {
  check_map("words", map, 2);
  check(map[0] == rows.size() && map[1] == columns.size(), "words: a map ", map, " over axes of ", rows.size(), " and ",
        columns.size());
  const Places down = places_of(rows), across = places_of(columns);
  std::vector<double> sums(down.count * across.count, 0), counts(down.count, 0);
  for (std::size_t row = 0; row < down.of.size(); ++row) {
    ++counts[down.of[row]];
    for (std::size_t i = 0; i < across.of.size(); ++i) {
      sums[down.of[row] * across.count + across.of[i]] +=
          static_cast<double>(map.data<float>()[row * across.of.size() + i]);
    }
  }
  Tensor made = Tensor::empty({static_cast<std::int64_t>(down.count), static_cast<std::int64_t>(across.count)});
  for (std::size_t i = 0; i < sums.size(); ++i) {
    made.data<float>()[i] = static_cast<float>(sums[i] / counts[i / across.count]);
  }
  return made;
}

}  // namespace regard
