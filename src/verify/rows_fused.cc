// Rows of the table: operations that do several steps at once, each with a sum inside.
#include <algorithm>

#include "base/check.h"
#include "regard/autograd/ops.h"
#include "verify/table.h"

namespace regard::verify {
namespace {

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

struct ConvolutionShape {
  std::int64_t time, channels, out, kernel;
  std::vector<std::int32_t> lengths;  // one an item
  Padding padding = Padding::kSame;
  bool bias = true;
};

Case convolution(const ConvolutionShape& s) {
  const auto batch = static_cast<std::int64_t>(s.lengths.size());
  Case made;
  made.name = text("conv1d ", s.padding == Padding::kSame ? "" : "causal ", batch, " × ", s.time, " × ", s.channels,
                   " to ", s.out, ", kernel ", s.kernel, s.bias ? "" : ", no bias");
  made.inputs = {{.name = "x", .shape = {batch, s.time, s.channels}, .batched = true},
                 {.name = "weight", .shape = {s.kernel * s.channels, s.out}}};
  if (s.bias) made.inputs.push_back({.name = "bias", .shape = {s.out}});
  made.build = [s](Tape&, std::span<const Var> x, Items items) {
    const auto lengths =
        std::span(s.lengths).subspan(static_cast<std::size_t>(items.begin), static_cast<std::size_t>(items.count()));
    return conv1d(x[0], x[1], s.bias ? x[2] : Var(), {.kernel = s.kernel, .padding = s.padding, .lengths = lengths});
  };
  made.formula = [s](std::span<const Numbers> x, Items items) {
    const std::int64_t before = s.padding == Padding::kCausal ? s.kernel - 1 : (s.kernel - 1) / 2;
    std::vector<Scalar> y;
    for (std::int64_t i = 0; i < items.count(); ++i) {
      const std::int64_t length = s.lengths[static_cast<std::size_t>(items.begin + i)];
      for (std::int64_t t = 0; t < s.time; ++t) {
        for (std::int64_t o = 0; o < s.out; ++o) {
          Scalar sum = s.bias && t < length ? x[2][o] : Scalar(0);
          for (std::int64_t j = 0; j < s.kernel && t < length; ++j) {
            const std::int64_t from = t + j - before;
            for (std::int64_t c = 0; c < s.channels; ++c) {
              const bool inside = from >= 0 && from < length;
              sum += (inside ? x[0][(i * s.time + from) * s.channels + c] : Scalar(0)) *
                     x[1][(j * s.channels + c) * s.out + o];
            }
          }
          y.push_back(sum);
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
Row row<Op::linear_cross_entropy>() {
  Row made{.op = Op::linear_cross_entropy,
           .formula = "−Σ_i w_i·log softmax(x_i·W + b)[target_i], ε smoothed",
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
Row row<Op::conv1d>() {
  Row made{.op = Op::conv1d, .formula = "y_t = Σ_j x_{t+j−before}·W_j + bias", .cases = {}, .bad = {}, .large = {}};
  for (const Padding padding : {Padding::kSame, Padding::kCausal}) {
    for (const ConvolutionShape& s :
         {ConvolutionShape{1, 1, 1, 1, {1}}, ConvolutionShape{7, 3, 5, 3, {7, 4, 0}},
          ConvolutionShape{5, 2, 17, 4, {5, 3}}, ConvolutionShape{3, 4, 3, 7, {3, 1, 2}},
          ConvolutionShape{17, 1, 2, 2, {17}}, ConvolutionShape{4, 5, 16, 1, {4, 2}},
          ConvolutionShape{0, 3, 2, 3, {0, 0}}, ConvolutionShape{4, 3, 2, 3, {}}, ConvolutionShape{4, 0, 2, 3, {4, 1}},
          ConvolutionShape{4, 3, 0, 3, {4, 1}}, ConvolutionShape{33, 7, 15, 5, {31, 33, 1}}}) {
      ConvolutionShape each = s;
      each.padding = padding;
      each.bias = s.kernel != 3 || s.time == 4;
      made.cases.push_back(convolution(each));
    }
    made.large.push_back(convolution({67, 33, 65, 5, {67, 31, 67, 1, 50}, padding}));
  }
  const auto bad = [&](const char* what, const Shape& x, const Shape& weight, const Shape& bias, std::int64_t kernel,
                       std::vector<std::int32_t> lengths, std::vector<std::string> expected) {
    expected.emplace_back("conv1d");
    made.bad.push_back({what,
                        [=](Tape& t) {
                          conv1d(blank(t, x), blank(t, weight), blank(t, bias), {.kernel = kernel, .lengths = lengths});
                        },
                        std::move(expected)});
  };
  bad("an input of two dimensions", {5, 3}, {9, 4}, {4}, 3, {}, {"[5, 3]"});
  bad("weights of another shape", {2, 5, 3}, {8, 4}, {4}, 3, {}, {"[8, 4]", "[9, out]"});
  bad("a bias of another width", {2, 5, 3}, {9, 4}, {3}, 3, {}, {"bias", "[3]", "[4]"});
  bad("no kernel", {2, 5, 3}, {0, 4}, {4}, 0, {}, {"kernel", "0"});
  bad("fewer lengths than items", {2, 5, 3}, {9, 4}, {4}, 3, {5}, {"1 lengths", "2"});
  bad("a length above the time", {2, 5, 3}, {9, 4}, {4}, 3, {5, 6}, {"6", "0 to 5"});
  return made;
}

}  // namespace regard::verify
