#include "tasks/probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "regard/attention/mechanism.h"
#include "regard/nn/multi_head.h"
#include "regard/nn/position.h"
#include "regard/nn/recurrent.h"
#include "tasks/translation_pairs.h"
#include "view/plot.h"
#include "view/terminal.h"

namespace regard {
namespace {

template <class T>
Tensor normals(const Shape& shape, RandomKey key, double size) {
  const Tensor out = Tensor::empty(shape, std::is_same_v<T, double> ? DType::kF64 : DType::kF32);
  for (std::int64_t i = 0; i < out.size(); ++i) {
    out.data<T>()[i] = static_cast<T>(size * normal(key, static_cast<std::uint64_t>(i)));
  }
  return out;
}

// What a network makes of a sequence [time, width] at its end, [1, width].
using ReadSequence = std::function<Var(Tape& tape, Var x)>;

// The norm of the gradient of every place, the last first.
std::vector<double> norms_by_distance(Parameters& parameters, const GradientProbe& settings, const ReadSequence& read) {
  const RandomKey key(settings.seed);
  Gradients gradients(parameters);
  Tape tape(gradients);
  // Small, so that tanh stays where it is nearly straight: what fades or grows is the work of the weights alone.
  const Var x = tape.variable(normals<double>({settings.length, settings.width}, key.at(1), 1e-6));
  const Var y = read(tape, x);
  tape.backward(y, normals<double>(y.shape(), key.at(2), 1));
  const Tensor& gradient = tape.gradient(x);
  std::vector<double> norms;
  for (std::int64_t t = settings.length; t-- > 0;) {
    double sum = 0;
    for (std::int64_t c = 0; c < settings.width; ++c) {
      const double value = gradient.data<double>()[t * settings.width + c];
      sum += value * value;
    }
    norms.push_back(std::sqrt(sum));
  }
  return norms;
}

struct CellProbe {
  std::string name;
  Cell cell;
  double gain = 0;  // of an orthogonal matrix from step to step; 0: as models start
  double open = 0;  // what is added to the gate that keeps what was
};

std::vector<double> cell_norms(const CellProbe& probe, const GradientProbe& settings) {
  Parameters parameters;
  const Builder builder(parameters, RandomKey(settings.seed).at(3), DType::kF64);
  const RecurrentLayer layer(builder, probe.cell, settings.width, settings.width);
  if (probe.gain > 0) {
    Parameters drawn;
    const Builder other(drawn, RandomKey(settings.seed).at(4), DType::kF64);
    const Parameter& matrix = other.orthogonal("matrix", {settings.width, settings.width}, probe.gain);
    parameters.find("recurrent.weight").value.copy_from(matrix.value);
  }
  if (probe.open != 0) {  // z of r, z, n; f of i, f, g, o: both stand second
    double* bias = parameters.find("recurrent.bias").value.data<double>();
    std::fill_n(bias + settings.width, settings.width, probe.open);
  }
  const std::vector<std::int32_t> lengths = {static_cast<std::int32_t>(settings.length)};
  return norms_by_distance(parameters, settings, [&](Tape&, Var x) {
    return layer(reshape(x, {settings.length, 1, settings.width}), lengths).last;
  });
}

std::vector<double> attention_norms(const GradientProbe& settings) {
  Parameters parameters;
  const Builder builder(parameters, RandomKey(settings.seed).at(5), DType::kF64);
  const MultiHead attention(builder, {.heads = 1, .query = settings.width});
  return norms_by_distance(parameters, settings, [&](Tape&, Var x) {
    const Var words = reshape(x, {1, settings.length, settings.width});
    const Var last = slice(words, 1, settings.length - 1, settings.length);
    return attention(last, words, words).output;
  });
}

struct Saturated {
  double entropy = 0, gradient = 0;
};

// p = softmax of each query over all keys, by the engine itself.
Saturated saturated(const SaturationProbe& settings, std::int64_t width, double scale) {
  const RandomKey key = RandomKey(settings.seed).at(static_cast<std::uint64_t>(width));
  Tape tape;
  const Var q = tape.constant(normals<float>({1, 1, settings.queries, width}, key.at(1), 1));
  const Var k = tape.constant(normals<float>({1, 1, settings.keys, width}, key.at(2), 1));
  const Mechanism mechanism(fmt::format("scaled_dot:scale={}", scale));
  const Tensor weights = attend(mechanism, q, k, k).trace.weights();
  Saturated mean;
  for (std::int64_t i = 0; i < settings.queries; ++i) {
    double entropy = 0, squares = 0, cubes = 0;
    for (std::int64_t j = 0; j < settings.keys; ++j) {
      const auto p = static_cast<double>(weights.data<float>()[i * settings.keys + j]);
      if (p > 0) entropy -= p * std::log(p);
      squares += p * p;
      cubes += p * p * p;
    }
    mean.entropy += entropy / std::log(static_cast<double>(settings.keys));
    mean.gradient += std::sqrt(std::max(0.0, squares - 2 * cubes + squares * squares));  // of diag(p) − ppᵀ
  }
  mean.entropy /= static_cast<double>(settings.queries);
  mean.gradient /= static_cast<double>(settings.queries);
  return mean;
}

// ‖y′ − y‖/‖y‖, y′ with its words put back where they came from.
double change_by_shuffling(const OrderProbe& settings, const std::function<Tensor(const Tensor& words)>& layer) {
  const RandomKey key(settings.seed);
  std::vector<std::int64_t> order(static_cast<std::size_t>(settings.words));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random_below(key.at(7), i, static_cast<std::uint32_t>(i))]);
  }
  const Tensor words = normals<float>({1, settings.words, settings.width}, key.at(6), 1), shuffled = words.clone();
  const std::int64_t width = settings.width;
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::copy_n(words.data<float>() + order[i] * width, width,
                shuffled.data<float>() + static_cast<std::int64_t>(i) * width);
  }
  const Tensor before = layer(words), after = layer(shuffled);
  double change = 0, size = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::int64_t c = 0; c < width; ++c) {
      const auto y = static_cast<double>(before.data<float>()[order[i] * width + c]);
      const auto moved = static_cast<double>(after.data<float>()[static_cast<std::int64_t>(i) * width + c]);
      change += (moved - y) * (moved - y);
      size += y * y;
    }
  }
  return std::sqrt(change / size);
}

// One free run of all rows of a batch; the words of each row, without what follows its end.
struct FreeRun {
  const Translator& translator;
  const Batch& batch;
  const ErrorProbe& settings;

  std::vector<std::vector<std::int32_t>> words(bool wrong, const Context& context) const {
    const SpecialIds ids = translator.target().special();
    const auto rows = static_cast<std::size_t>(batch.size());
    std::vector<std::int32_t> all(rows), previous(rows, ids.begin);
    std::iota(all.begin(), all.end(), 0);
    std::vector<std::vector<std::int32_t>> made(rows);
    const std::unique_ptr<Decoding> decoding = translator.model().decode(batch);
    for (std::int64_t step = 0; step <= settings.at + settings.distance; ++step) {
      stop_if_asked(context);
      const Tensor logits = decoding->step(all, all, previous);
      const std::int64_t words = logits[1];
      for (std::size_t row = 0; row < rows; ++row) {
        const float* first = logits.data<float>() + static_cast<std::int64_t>(row) * words;
        std::int32_t best = static_cast<std::int32_t>(std::max_element(first, first + words) - first);
        if (wrong && step == settings.at && best != ids.end) best = second_best(first, words, best, ids.end);
        previous[row] = best;
        made[row].push_back(best);
      }
    }
    for (std::vector<std::int32_t>& row : made) row.erase(after_end(row, ids.end), row.end());
    return made;
  }

 private:
  static std::int32_t second_best(const float* logits, std::int64_t words, std::int32_t best, std::int32_t end) {
    std::int32_t second = -1;
    for (std::int32_t i = 0; i < words; ++i) {
      if (i == best || i == end) continue;
      if (second < 0 || logits[i] > logits[second]) second = i;
    }
    return second < 0 ? best : second;
  }
  static std::vector<std::int32_t>::iterator after_end(std::vector<std::int32_t>& row, std::int32_t end) {
    const auto found = std::find(row.begin(), row.end(), end);
    return found == row.end() ? found : found + 1;
  }
};

}  // namespace

std::string to_text(const Probe& probe) {
  std::vector<double> places;
  for (const ChartLine& line : probe.lines) {
    for (const auto& [x, y] : line.points) {
      if (std::find(places.begin(), places.end(), x) == places.end()) places.push_back(x);
    }
  }
  std::sort(places.begin(), places.end());
  constexpr std::size_t kRows = 16;
  const std::size_t every = std::max<std::size_t>(1, (places.size() + kRows - 1) / kRows);
  std::vector<std::vector<std::string>> rows = {{probe.chart.across}};
  for (const ChartLine& line : probe.lines) rows[0].push_back(line.name);
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (i % every != 0 && i + 1 != places.size()) continue;
    const auto category = static_cast<std::size_t>(std::max(0.0, places[i]));
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(category < probe.chart.categories.size() ? probe.chart.categories[category] : plot_number(places[i]));
    for (const ChartLine& line : probe.lines) {
      const auto found = std::find_if(line.points.begin(), line.points.end(),
                                      [&](const auto& point) { return point.first == places[i]; });
      row.push_back(found == line.points.end() ? "–" : fmt::format("{:.4g}", found->second));
    }
  }
  std::string out = probe.about + "\n\n";
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      int width = 0;
      for (const auto& other : rows) width = std::max(width, display_width(other[i]));
      const std::string blanks(static_cast<std::size_t>(width - display_width(row[i])), ' ');
      out += (i == 0 ? "" : "  ") + blanks + row[i];
    }
    out += "\n";
  }
  return out;
}

std::string to_svg(const Probe& probe) { return line_chart(probe.lines, probe.chart); }

Probe probe_gradients(const GradientProbe& settings) {
  check(settings.length >= 2 && settings.width >= 2, "probe gradient: length ", settings.length, ", width ",
        settings.width, ", expected 2 or more");
  Probe probe{
      .about =
          "How much what a network gives at the end depends on an input so many steps before:\n"
          "the norm of the gradient, over that of the last input.",
      .lines = {},
      .chart = {
          .title = "Gradient by distance", .across = "distance", .up = "norm, relative to distance 0", .log_up = true}};
  const auto add = [&](const std::string& name, const std::vector<double>& norms) {
    ChartLine& line = probe.lines.emplace_back(ChartLine{name, {}});
    for (std::size_t d = 0; d < norms.size(); ++d)
      line.points.emplace_back(static_cast<double>(d), norms[d] / norms[0]);
  };
  for (const CellProbe& each : {CellProbe{"tanh, |W| = 0.8", Cell::kTanh, 0.8},
                                {"tanh, |W| = 1.2", Cell::kTanh, 1.2},
                                {"GRU", Cell::kGru},
                                {"GRU, gates open", Cell::kGru, 0, 4},
                                {"LSTM", Cell::kLstm},
                                {"LSTM, gates open", Cell::kLstm, 0, 4}}) {
    add(each.name, cell_norms(each, settings));
  }
  add("attention", attention_norms(settings));
  return probe;
}

Probe probe_saturation(const SaturationProbe& settings) {
  check(settings.keys >= 2 && settings.queries >= 1 && settings.widest >= 4, "probe saturation: ", settings.keys,
        " keys, ", settings.queries, " queries, width ", settings.widest, ": expected 2, 1 and 4 or more");
  Probe probe{.about = fmt::format("Softmax of scale·q·k over {} random keys of width d: its entropy as a share of the "
                                   "most, and the size of its gradient.",
                                   settings.keys),
              .lines = {},
              .chart = {.title = "Softmax by width and scale",
                        .across = "width d",
                        .up = "entropy (share of the most), gradient",
                        .log_across = true,
                        .from_zero = true}};
  struct Scale {
    const char* name;
    double (*of)(double width);
  };
  const Scale scales[] = {{"1", [](double) { return 1.0; }},
                          {"1/√d", [](double d) { return 1 / std::sqrt(d); }},
                          {"1/(8√d)", [](double d) { return 1 / (8 * std::sqrt(d)); }}};
  std::vector<ChartLine> gradients;
  for (const Scale& scale : scales) {
    ChartLine entropy{text("entropy, ", scale.name), {}}, gradient{text("gradient, ", scale.name), {}};
    for (std::int64_t width = 4; width <= settings.widest; width *= 2) {
      const auto d = static_cast<double>(width);
      const Saturated mean = saturated(settings, width, scale.of(d));
      entropy.points.emplace_back(d, mean.entropy);
      gradient.points.emplace_back(d, mean.gradient);
    }
    probe.lines.push_back(std::move(entropy));
    gradients.push_back(std::move(gradient));
  }
  probe.lines.insert(probe.lines.end(), gradients.begin(), gradients.end());
  return probe;
}

Probe probe_order(const OrderProbe& settings) {
  check(settings.words >= 2 && settings.width >= 2, "probe order: ", settings.words, " words of width ", settings.width,
        ", expected 2 or more");
  Probe probe{.about =
                  "Words are shuffled: how much what a layer makes of each word changes, relative to its size.\n"
                  "0: the layer is blind to order.",
              .lines = {{"change", {}}},
              .chart = {.title = "What order does to a layer",
                        .across = "layer",
                        .up = "relative change",
                        .from_zero = true,
                        .bars = true}};
  const auto add = [&](const std::string& name, const std::function<Tensor(const Tensor&)>& layer) {
    probe.lines[0].points.emplace_back(static_cast<double>(probe.chart.categories.size()),
                                       change_by_shuffling(settings, layer));
    probe.chart.categories.push_back(name);
  };
  const auto attention = [&](const std::string& name, const std::string& line, PositionKind kind) {
    Parameters parameters;
    const Builder builder(parameters, RandomKey(settings.seed).at(8));
    const Position position(builder.under("position"),
                            {.kind = kind, .width = settings.width, .longest = settings.words});
    const MultiHead heads(builder, {.heads = settings.heads, .query = settings.width, .lines = {line}});
    for (Parameter& each : parameters) {  // learned places start small; here they shall count
      if (each.name.starts_with("position")) each.value.copy_from(normals<float>(each.value.shape(), RandomKey(9), 1));
    }
    add(name, [&](const Tensor& words) {
      Tape tape;
      const Var x = position(tape.constant(words));
      return heads(x, x, x).output.value().clone();
    });
  };
  attention("attention", "scaled_dot", PositionKind::kNone);
  attention("additive", "additive", PositionKind::kNone);
  attention("sinusoids", "scaled_dot", PositionKind::kSinusoidal);
  attention("learned", "scaled_dot", PositionKind::kLearned);
  attention("rotary", "rotary(scaled_dot)", PositionKind::kNone);
  attention("relative", "relative:4", PositionKind::kNone);
  attention("alibi", "scaled_dot | alibi", PositionKind::kNone);
  attention("causal", "scaled_dot | causal", PositionKind::kNone);
  {
    Parameters parameters;
    const RecurrentLayer layer(Builder(parameters, RandomKey(settings.seed).at(8)), Cell::kGru, settings.width,
                               settings.width);
    const std::vector<std::int32_t> lengths = {static_cast<std::int32_t>(settings.words)};
    add("GRU", [&](const Tensor& words) {
      Tape tape;
      const Var x = reshape(tape.constant(words), {settings.words, 1, settings.width});
      return layer(x, lengths).states.value().clone();
    });
  }
  return probe;
}

Probe probe_errors(std::span<const ProbedModel> models, std::span<const std::string> sources,
                   const ErrorProbe& settings, const Context& context) {
  check(!models.empty() && !sources.empty(), "probe errors: ", models.size(), " models and ", sources.size(),
        " sentences, expected 1 or more");
  check(settings.at >= 0 && settings.distance >= 1, "probe errors: word ", settings.at, ", distance ",
        settings.distance, ", expected 0 and 1 or more");
  const ContextScope scope(context);
  Probe probe{.about = fmt::format("Word {} is replaced by the second best; then the model goes on by itself.\n"
                                   "The share of words that are others than without that, by distance.",
                                   settings.at + 1),
              .lines = {},
              .chart = {.title = "What follows one wrong word",
                        .across = "words behind it",
                        .up = "share of other words",
                        .from_zero = true}};
  constexpr std::int64_t kTokens = 4096;
  for (const ProbedModel& model : models) {
    std::vector<SequencePair> pairs;
    for (const std::string& line : sources) {
      pairs.push_back({.id = pairs.size(), .source = source_ids(model.translator->source(), line)});
    }
    std::vector<double> others(static_cast<std::size_t>(settings.distance) + 1, 0), all = others;
    for_each_batch(pairs, kTokens, ends_of(model.translator->target()), [&](const Batch& batch, const auto&) {
      const FreeRun run{*model.translator, batch, settings};
      const auto before = run.words(false, context), after = run.words(settings.wrong, context);
      for (std::size_t row = 0; row < before.size(); ++row) {
        const auto at = static_cast<std::size_t>(settings.at);
        if (before[row].size() < at + 2) continue;  // there is no word, only the end
        for (std::size_t d = 0; at + d < before[row].size() && d < others.size(); ++d) {
          const bool same = at + d < after[row].size() && after[row][at + d] == before[row][at + d];
          others[d] += same ? 0 : 1;
          ++all[d];
        }
      }
    });
    check(all[0] > 0, "probe errors: no translation of '", model.name, "' has ", settings.at + 1, " words");
    ChartLine& line = probe.lines.emplace_back(ChartLine{model.name, {}});
    for (std::size_t d = 0; d < others.size(); ++d) {
      if (all[d] > 0) line.points.emplace_back(static_cast<double>(d), others[d] / all[d]);
    }
  }
  return probe;
}

}  // namespace regard
