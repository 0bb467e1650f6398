// Rows of the table: operations that do several steps at once, each with a sum inside.
#include <algorithm>

#include "base/check.h"
#include "regard/attention/attend.h"
#include "regard/autograd/ops.h"
#include "verify/table.h"

namespace regard::verify {
namespace {

std::string word(std::int64_t active) { return active < 0 ? "" : text(", ", active, " active"); }

Case recurrent_step(std::int64_t batch, std::int64_t width, std::int64_t active = -1) {
  Case made;
  made.name = text("gru_cell ", batch, " × ", width, word(active));
  made.inputs = {{.name = "input", .shape = {batch, 3 * width}, .low = -2, .high = 2, .batched = true},
                 {.name = "state", .shape = {batch, width}, .batched = true},
                 {.name = "recurrent", .shape = {width, 3 * width}},
                 {.name = "bias", .shape = {3 * width}}};
  const auto active_of = [active](Items items) {
    return active < 0 ? -1 : std::clamp<std::int64_t>(active - items.begin, 0, items.count());
  };
  made.build = [=](Tape&, std::span<const Var> x, Items items) {
    return gru_cell(x[0], x[1], x[2], x[3], active_of(items));
  };
  made.formula = [=](std::span<const Numbers> x, Items items) {
    const Numbers &input = x[0], &state = x[1], &recurrent = x[2], &bias = x[3];
    const std::int64_t alive = active_of(items) < 0 ? items.count() : active_of(items);
    std::vector<Scalar> y;
    for (std::int64_t i = 0; i < items.count(); ++i) {
      for (std::int64_t c = 0; c < width; ++c) {
        const Scalar& h = state[i * width + c];
        if (i >= alive) {
          y.push_back(h);
          continue;
        }
        const auto part = [&](std::int64_t gate) {  // u of one gate
          Scalar sum = bias[gate * width + c];
          for (std::int64_t k = 0; k < width; ++k)
            sum += state[i * width + k] * recurrent[k * 3 * width + gate * width + c];
          return sum;
        };
        const Scalar* row = &input.all[static_cast<std::size_t>(i * 3 * width + c)];
        const Scalar r = sigmoid(row[0] + part(0)), z = sigmoid(row[width] + part(1));
        const Scalar n = tanh(row[2 * width] + r * part(2));
        y.push_back(n + z * (h - n));
      }
    }
    return y;
  };
  return made;
}

struct LossShape {
  std::int64_t rows, width, vocabulary;
  bool bias = true, weighted = false, transposed = false;
  double smoothing = 0;
  bool ignores = false;  // every third row
};

std::int32_t target_of(const LossShape& s, std::int64_t row) {
  return static_cast<std::int32_t>((row * row * 5 + row + s.vocabulary / 2) % s.vocabulary);
}
bool is_ignored(const LossShape& s, std::int64_t row) { return s.ignores && row % 3 == 1; }
float token_weight_of(std::int64_t row) { return static_cast<float>((row * 7 + 1) % 4) * 0.75f; }  // some are 0

Case loss(const LossShape& s) {
  Case made;
  made.name = text("linear_cross_entropy ", s.rows, " × ", s.width, " × ", s.vocabulary, s.bias ? "" : ", no bias",
                   s.weighted ? ", weighted" : "", s.transposed ? ", transposed" : "",
                   s.smoothing > 0 ? ", smoothed" : "", s.ignores ? ", some ignored" : "");
  made.inputs = {
      {.name = "x", .shape = {s.rows, s.width}, .batched = true},
      {.name = "weight", .shape = s.transposed ? Shape{s.vocabulary, s.width} : Shape{s.width, s.vocabulary}}};
  if (s.bias) made.inputs.push_back({.name = "bias", .shape = {s.vocabulary}});
  made.output_batched = false;
  made.build = [s](Tape&, std::span<const Var> x, Items items) {
    Tensor targets = Tensor::empty({items.count()}, DType::kI32), weights;
    for (std::int64_t i = 0; i < items.count(); ++i) {
      targets.data<std::int32_t>()[i] = is_ignored(s, items.begin + i) ? -1 : target_of(s, items.begin + i);
    }
    if (s.weighted) {
      weights = Tensor::empty({items.count()});
      for (std::int64_t i = 0; i < items.count(); ++i) weights.data<float>()[i] = token_weight_of(items.begin + i);
      weights = weights.to(x[0].dtype());
    }
    CrossEntropyOptions options{.token_weights = weights, .transposed = s.transposed, .label_smoothing = s.smoothing};
    if (s.ignores) options.ignored = -1;
    return linear_cross_entropy(x[0], x[1], s.bias ? x[2] : Var(), targets, options).loss;
  };
  made.formula = [s](std::span<const Numbers> x, Items items) {
    Scalar total(0);
    for (std::int64_t i = 0; i < items.count(); ++i) {
      if (is_ignored(s, items.begin + i) || (s.weighted && token_weight_of(items.begin + i) == 0)) continue;
      std::vector<Scalar> logits;
      Scalar peak(-1e300), sum(0);
      for (std::int64_t v = 0; v < s.vocabulary; ++v) {
        Scalar logit = s.bias ? x[2][v] : Scalar(0);
        for (std::int64_t c = 0; c < s.width; ++c) {
          logit += x[0][i * s.width + c] * x[1][s.transposed ? v * s.width + c : c * s.vocabulary + v];
        }
        logits.push_back(logit);
        if (!(logit.value <= peak.value)) peak = without_gradient(logit);
      }
      for (const Scalar& logit : logits) sum += exp(logit - peak);
      const Scalar& chosen = logits[static_cast<std::size_t>(target_of(s, items.begin + i))];
      Scalar log_probability = (chosen - peak) - log(sum);
      if (s.smoothing > 0) {
        Scalar mean(0);
        for (const Scalar& logit : logits)
          mean += ((logit - peak) - log(sum)) * Scalar(1.0 / static_cast<double>(s.vocabulary));
        log_probability = Scalar(1 - s.smoothing) * log_probability + Scalar(s.smoothing) * mean;
      }
      total += s.weighted ? Scalar(-static_cast<double>(token_weight_of(items.begin + i))) * log_probability
                          : -log_probability;
    }
    return std::vector<Scalar>{total};
  };
  return made;
}

struct AttentionShape {
  std::int64_t queries, keys, hidden, width;
  std::vector<std::int32_t> lengths;  // one an item
};

Case attention(const AttentionShape& s) {
  const auto batch = static_cast<std::int64_t>(s.lengths.size());
  Case made;
  made.name =
      text("attend_additive ", batch, " × ", s.queries, " × ", s.keys, ", hidden ", s.hidden, ", width ", s.width);
  made.inputs = {{.name = "q", .shape = {batch, s.queries, s.hidden}, .batched = true},
                 {.name = "k", .shape = {batch, s.keys, s.hidden}, .batched = true},
                 {.name = "v", .shape = {batch, s.keys, s.width}, .batched = true},
                 {.name = "theta", .shape = {s.hidden}}};
  made.build = [s](Tape&, std::span<const Var> x, Items items) {
    const auto lengths =
        std::span(s.lengths).subspan(static_cast<std::size_t>(items.begin), static_cast<std::size_t>(items.count()));
    return attend_additive(x[0], x[1], x[2], x[3], lengths).context;
  };
  made.formula = [s](std::span<const Numbers> x, Items items) {
    const Numbers &q = x[0], &k = x[1], &v = x[2], &theta = x[3];
    std::vector<Scalar> y;
    for (std::int64_t item = 0; item < items.count(); ++item) {
      const std::int64_t visible = s.lengths[static_cast<std::size_t>(items.begin + item)];
      for (std::int64_t i = item * s.queries; i < (item + 1) * s.queries; ++i) {
        std::vector<Scalar> weights;
        Scalar peak(-1e300), sum(0);
        for (std::int64_t j = 0; j < visible; ++j) {
          Scalar score(0);
          for (std::int64_t c = 0; c < s.hidden; ++c) {
            score += theta[c] * tanh(q[i * s.hidden + c] + k[(item * s.keys + j) * s.hidden + c]);
          }
          weights.push_back(score);
          if (!(score.value <= peak.value)) peak = without_gradient(score);
        }
        for (Scalar& weight : weights) sum += weight = exp(weight - peak);
        for (Scalar& weight : weights) weight = weight / sum;
        for (std::int64_t c = 0; c < s.width; ++c) {
          Scalar read(0);
          for (std::int64_t j = 0; j < visible; ++j) {
            read += weights[static_cast<std::size_t>(j)] * v[(item * s.keys + j) * s.width + c];
          }
          y.push_back(read);
        }
      }
    }
    return y;
  };
  return made;
}

Tensor ids(std::initializer_list<std::int32_t> values) {
  return Tensor::of<std::int32_t>({static_cast<std::int64_t>(values.size())}, values);
}

}  // namespace

template <>
Row row<Op::gru_cell>() {
  Row made{
      .op = Op::gru_cell, .formula = "h′ = n + z·(h − n), n = tanh(x_n + r·u_n)", .cases = {}, .bad = {}, .large = {}};
  made.cases = {
      recurrent_step(1, 1),    recurrent_step(3, 5),     recurrent_step(3, 5, 0),  recurrent_step(3, 5, 1),
      recurrent_step(3, 5, 3), recurrent_step(4, 15),    recurrent_step(2, 16, 1), recurrent_step(5, 17, 4),
      recurrent_step(7, 33),   recurrent_step(2, 63, 1), recurrent_step(3, 65, 2), recurrent_step(0, 4),
      recurrent_step(0, 4, 0), recurrent_step(3, 0),
  };
  made.large = {recurrent_step(67, 129, 40), recurrent_step(131, 64)};
  made.bad = {
      {"an input of another width",
       [](Tape& t) {
         gru_cell(blank(t, {2, 11}), blank(t, {2, 4}), blank(t, {4, 12}), blank(t, {12}));
       },
       {"gru_cell", "input", "[2, 11]", "[2, 12]"}},
      {"a state of another batch",
       [](Tape& t) {
         gru_cell(blank(t, {2, 12}), blank(t, {3, 4}), blank(t, {4, 12}), blank(t, {12}));
       },
       {"gru_cell", "[2, 12]", "[3, 12]"}},
      {"a recurrent matrix of another shape",
       [](Tape& t) {
         gru_cell(blank(t, {2, 12}), blank(t, {2, 4}), blank(t, {12, 4}), blank(t, {12}));
       },
       {"gru_cell", "recurrent", "[12, 4]", "[4, 12]"}},
      {"a bias of another width",
       [](Tape& t) {
         gru_cell(blank(t, {2, 12}), blank(t, {2, 4}), blank(t, {4, 12}), blank(t, {4}));
       },
       {"gru_cell", "bias", "[4]", "[12]"}},
      {"more active rows than there are",
       [](Tape& t) {
         gru_cell(blank(t, {2, 12}), blank(t, {2, 4}), blank(t, {4, 12}), blank(t, {12}), 3);
       },
       {"gru_cell", "3", "2"}},
      {"types differ",
       [](Tape& t) {
         gru_cell(blank(t, {2, 12}), blank(t, {2, 4}, DType::kF64), blank(t, {4, 12}), blank(t, {12}));
       },
       {"gru_cell", "f32", "f64"}},
  };
  return made;
}

template <>
Row row<Op::linear_cross_entropy>() {
  Row made{.op = Op::linear_cross_entropy,
           .formula = "−Σ_i w_i·((1 − ε)·log p_i[target_i] + ε·mean log p_i), p_i = softmax(x_i·W + b)",
           .cases = {},
           .bad = {},
           .large = {}};
  made.cases = {
      loss({1, 1, 2}),
      loss({3, 5, 7}),
      loss({3, 5, 7, false}),
      loss({4, 5, 7, true, true}),
      loss({5, 3, 9, true, true, true}),
      loss({3, 4, 17, false, false, true}),
      loss({17, 16, 33}),
      loss({15, 17, 63, true, true}),
      loss({7, 31, 65, true, false, true}),
      loss({2, 9, 1031}),
      loss({65, 7, 129, true, true}),
      loss({4, 5, 7, true, false, false, 0.1}),
      loss({7, 3, 33, true, true, true, 0.25}),
      loss({5, 4, 17, false, false, false, 0, true}),
      loss({8, 6, 65, true, true, false, 0.1, true}),
      loss({2, 0, 5}),  // the bias alone decides
      loss({0, 5, 7}),
      loss({3, 5, 1}),
  };
  made.cases.back().flat = true;  // one word: its probability is 1
  made.large = {loss({131, 65, 1031, true, true}), loss({131, 65, 1031, true, false, true}),
                loss({600, 3, 16411, true, true, false, 0.1})};  // rows in several chunks
  made.bad = {
      {"a target past the end",
       [](Tape& t) {
         linear_cross_entropy(blank(t, {2, 3}), blank(t, {3, 5}), Var(), ids({0, 5}));
       },
       {"linear_cross_entropy", "5", "0 to 4"}},
      {"a target below zero",
       [](Tape& t) {
         linear_cross_entropy(blank(t, {2, 3}), blank(t, {3, 5}), Var(), ids({0, -1}));
       },
       {"linear_cross_entropy", "-1", "0 to 4"}},
      {"fewer targets than rows",
       [](Tape& t) {
         linear_cross_entropy(blank(t, {2, 3}), blank(t, {3, 5}), Var(), ids({0}));
       },
       {"linear_cross_entropy", "targets", "[1]", "[2]"}},
      {"targets of another type",
       [](Tape& t) {
         linear_cross_entropy(blank(t, {2, 3}), blank(t, {3, 5}), Var(), Tensor::zeros({2}));
       },
       {"linear_cross_entropy", "f32", "i32"}},
      {"inner sizes differ",
       [](Tape& t) {
         linear_cross_entropy(blank(t, {2, 3}), blank(t, {4, 5}), Var(), ids({0, 1}));
       },
       {"linear_cross_entropy", "[4, 5]", "[3, 5]"}},
      {"a bias of another width",
       [](Tape& t) {
         linear_cross_entropy(blank(t, {2, 3}), blank(t, {3, 5}), blank(t, {4}), ids({0, 1}));
       },
       {"linear_cross_entropy", "bias", "[4]", "[5]"}},
      {"weights of another length",
       [](Tape& t) {
         linear_cross_entropy(blank(t, {2, 3}), blank(t, {3, 5}), Var(), ids({0, 1}),
                              {.token_weights = Tensor::zeros({3})});
       },
       {"linear_cross_entropy", "weights", "[3]", "[2]"}},
      {"smoothing of one",
       [](Tape& t) {
         linear_cross_entropy(blank(t, {2, 3}), blank(t, {3, 5}), Var(), ids({0, 1}), {.label_smoothing = 1});
       },
       {"linear_cross_entropy", "smoothing", "1", "below 1"}},
      {"types differ",
       [](Tape& t) {
         linear_cross_entropy(blank(t, {2, 3}), blank(t, {3, 5}, DType::kF64), Var(), ids({0, 1}));
       },
       {"linear_cross_entropy", "f32", "f64"}},
  };
  return made;
}

template <>
Row row<Op::attend_additive>() {
  Row made{.op = Op::attend_additive,
           .formula = "y_i = Σ_j p_ij·v_j, p_i = softmax_j(θᵀ tanh(q_i + k_j))",
           .cases = {},
           .bad = {},
           .large = {}};
  made.cases = {
      attention({1, 1, 1, 1, {1}}),
      attention({2, 3, 5, 4, {3, 1}}),
      attention({3, 5, 2, 3, {0, 5, 4}}),  // the first sees nothing
      attention({1, 17, 16, 33, {17, 1, 16}}),
      attention({5, 15, 31, 17, {15, 14}}),
      attention({2, 65, 7, 3, {64, 65, 63}}),
      attention({7, 33, 65, 15, {33}}),
      attention({1, 129, 17, 65, {129, 128, 3, 0, 64}}),
      attention({3, 4, 0, 5, {4, 2}}),  // every score is 0
      attention({3, 4, 5, 0, {4, 2}}),
      attention({0, 4, 5, 3, {4, 2}}),
      attention({2, 0, 5, 3, {0, 0}}),
      attention({2, 4, 5, 3, {}}),
      attention({2, 4, 5, 3, {0, 0}}),  // nobody sees anything
  };
  made.cases[11].flat = made.cases[13].flat = true;
  made.large = {attention({5, 67, 129, 65, {67, 0, 13, 66, 40, 41, 1}})};
  const auto call = [](Tape& t, const Shape& q, const Shape& k, const Shape& v, const Shape& theta,
                       const std::vector<std::int32_t>& lengths) {
    attend_additive(blank(t, q), blank(t, k), blank(t, v), blank(t, theta), lengths);
  };
  made.bad = {
      {"keys and values differ in length",
       [call](Tape& t) {
         call(t, {2, 3, 4}, {2, 5, 4}, {2, 6, 7}, {4}, {5, 5});
       },
       {"attend_additive", "keys", "values", "[2, 5, 4]", "[2, 6, 7]"}},
      {"queries and keys differ in width",
       [call](Tape& t) {
         call(t, {2, 3, 3}, {2, 5, 4}, {2, 5, 7}, {4}, {5, 5});
       },
       {"attend_additive", "queries", "keys", "[2, 3, 3]", "[2, 5, 4]"}},
      {"batches differ",
       [call](Tape& t) {
         call(t, {1, 3, 4}, {2, 5, 4}, {2, 5, 7}, {4}, {5, 5});
       },
       {"attend_additive", "[1, 3, 4]", "[2, 5, 4]"}},
      {"theta of another width",
       [call](Tape& t) {
         call(t, {2, 3, 4}, {2, 5, 4}, {2, 5, 7}, {3}, {5, 5});
       },
       {"attend_additive", "theta", "[3]", "[4]"}},
      {"fewer lengths than items",
       [call](Tape& t) {
         call(t, {2, 3, 4}, {2, 5, 4}, {2, 5, 7}, {4}, {5});
       },
       {"attend_additive", "lengths", "1", "2"}},
      {"a length above the number of keys",
       [call](Tape& t) {
         call(t, {2, 3, 4}, {2, 5, 4}, {2, 5, 7}, {4}, {5, 6});
       },
       {"attend_additive", "length", "6", "0 to 5"}},
      {"a length below zero",
       [call](Tape& t) {
         call(t, {2, 3, 4}, {2, 5, 4}, {2, 5, 7}, {4}, {5, -1});
       },
       {"attend_additive", "length", "-1", "0 to 5"}},
      {"a query of two dimensions",
       [call](Tape& t) {
         call(t, {2, 3}, {2, 5, 4}, {2, 5, 7}, {4}, {5, 5});
       },
       {"attend_additive", "[2, 3]"}},
  };
  return made;
}

}  // namespace regard::verify
