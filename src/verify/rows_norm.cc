// Rows of the table: operations over the last dimension.
#include "base/check.h"
#include "regard/autograd/ops.h"
#include "verify/table.h"

namespace regard::verify {
namespace {

// A formula for one row, lifted to all rows of x; further inputs are [width].
using RowFormula = std::vector<Scalar> (*)(std::span<const Scalar> x, std::span<const Numbers> inputs);

Formula for_each_row(RowFormula formula) {
  return [formula](std::span<const Numbers> inputs, Items) {
    std::vector<Scalar> y;
    const std::int64_t width = inputs[0].shape.row_width();
    for (std::int64_t row = 0; width > 0 && row < inputs[0].shape.row_count(); ++row) {
      const auto begin = static_cast<std::size_t>(row * width);
      for (const Scalar& each :
           formula(std::span(inputs[0].all).subspan(begin, static_cast<std::size_t>(width)), inputs)) {
        y.push_back(each);
      }
    }
    return y;
  };
}

Scalar peak_of(std::span<const Scalar> x) {
  Scalar peak = x[0];
  for (const Scalar& each : x) peak = each.value > peak.value ? each : peak;
  return without_gradient(peak);
}

std::vector<Scalar> softmax_of(std::span<const Scalar> x, std::span<const Numbers>) {
  const Scalar peak = peak_of(x);
  std::vector<Scalar> y;
  Scalar sum(0);
  for (const Scalar& each : x) sum += y.emplace_back(exp(each - peak));
  for (Scalar& each : y) each = each / sum;
  return y;
}

std::vector<Scalar> log_softmax_of(std::span<const Scalar> x, std::span<const Numbers>) {
  const Scalar peak = peak_of(x);
  Scalar sum(0);
  for (const Scalar& each : x) sum += exp(each - peak);
  std::vector<Scalar> y;
  for (const Scalar& each : x) y.push_back((each - peak) - log(sum));
  return y;
}

constexpr double kEpsilon = static_cast<double>(1e-5f);

std::vector<Scalar> layer_norm_of(std::span<const Scalar> x, std::span<const Numbers> inputs) {
  const Scalar share(1 / static_cast<double>(x.size()));
  Scalar mean(0), variance(0);
  for (const Scalar& each : x) mean += each;
  mean = mean * share;
  for (const Scalar& each : x) variance += (each - mean) * (each - mean);
  const Scalar deviation = sqrt(variance * share + Scalar(kEpsilon));
  std::vector<Scalar> y;
  for (std::size_t c = 0; c < x.size(); ++c) {
    y.push_back((x[c] - mean) / deviation * inputs[1].all[c] + inputs[2].all[c]);
  }
  return y;
}

std::vector<Scalar> rms_norm_of(std::span<const Scalar> x, std::span<const Numbers> inputs) {
  Scalar squares(0);
  for (const Scalar& each : x) squares += each * each;
  const Scalar root = sqrt(squares * Scalar(1 / static_cast<double>(x.size())) + Scalar(kEpsilon));
  std::vector<Scalar> y;
  for (std::size_t c = 0; c < x.size(); ++c) y.push_back(x[c] / root * inputs[1].all[c]);
  return y;
}

const std::vector<Shape>& row_shapes() {
  static const std::vector<Shape> shapes = {{5},       {4, 2},  {3, 7},    {2, 3, 15}, {5, 16}, {3, 17},
                                            {2, 31},   {33, 3}, {3, 63},   {2, 64},    {3, 65}, {2, 257},
                                            {7, 1025}, {0, 5},  {2, 0, 3}, {5, 0}};
  return shapes;
}

Case rowwise(Op op, const Shape& shape, RowFormula formula, double low = -2, double high = 2) {
  Case made;
  made.name = text(name_of(op), ' ', shape, low == -2 ? "" : text(" in ", low, "…", high));
  made.inputs = {{.name = "x", .shape = shape, .low = low, .high = high, .batched = shape.rank() > 1}};
  const std::int64_t width = shape.row_width();
  switch (op) {
    case Op::softmax:
      made.build = [](Tape&, std::span<const Var> x, Items) { return softmax(x[0]); };
      break;
    case Op::log_softmax:
      made.build = [](Tape&, std::span<const Var> x, Items) { return log_softmax(x[0]); };
      break;
    case Op::layer_norm:
      made.inputs.push_back({.name = "weight", .shape = {width}});
      made.inputs.push_back({.name = "bias", .shape = {width}});
      made.build = [](Tape&, std::span<const Var> x, Items) { return layer_norm(x[0], x[1], x[2]); };
      break;
    default:
      made.inputs.push_back({.name = "weight", .shape = {width}});
      made.build = [](Tape&, std::span<const Var> x, Items) { return rms_norm(x[0], x[1]); };
      break;
  }
  made.formula = for_each_row(formula);
  return made;
}

Row rowwise_row(Op op, const char* words, RowFormula formula) {
  Row made{.op = op, .formula = words, .cases = {}, .bad = {}, .large = {}};
  for (const Shape& shape : row_shapes()) made.cases.push_back(rowwise(op, shape, formula));
  made.large.push_back(rowwise(op, {301, 517}, formula));
  return made;
}

}  // namespace

template <>
Row row<Op::softmax>() {
  Row made = rowwise_row(Op::softmax, "y = exp x/Σ exp x", softmax_of);
  made.cases.push_back(rowwise(Op::softmax, {3, 1}, softmax_of));
  made.cases.back().flat = true;  // always 1
  made.cases.push_back(rowwise(Op::softmax, {3, 37}, softmax_of, -30, 30));
  made.cases.push_back(rowwise(Op::softmax, {3, 37}, softmax_of, 9990, 10000));  // far from zero, close to each other
  made.bad = {
      {"whole numbers", [](Tape& t) { softmax(blank(t, {3}, DType::kI32)); }, {"i32"}},
  };
  return made;
}

template <>
Row row<Op::log_softmax>() {
  Row made = rowwise_row(Op::log_softmax, "y = x − log Σ exp x", log_softmax_of);
  made.cases.push_back(rowwise(Op::log_softmax, {3, 1}, log_softmax_of));
  made.cases.back().flat = true;  // always 0
  made.cases.push_back(rowwise(Op::log_softmax, {3, 37}, log_softmax_of, -30, 30));
  made.cases.push_back(rowwise(Op::log_softmax, {3, 37}, log_softmax_of, 9990, 10000));
  made.bad = {
      {"whole numbers", [](Tape& t) { log_softmax(blank(t, {3}, DType::kI32)); }, {"i32"}},
  };
  return made;
}

template <>
Row row<Op::layer_norm>() {
  Row made = rowwise_row(Op::layer_norm, "y = (x − mean)/√(variance + ε)·weight + bias", layer_norm_of);
  made.cases.push_back(rowwise(Op::layer_norm, {4, 1}, layer_norm_of));            // nothing but the bias is left
  made.cases.push_back(rowwise(Op::layer_norm, {3, 67}, layer_norm_of, 99, 101));  // a mean far from zero
  made.bad = {
      {"a weight of another width",
       [](Tape& t) {
         layer_norm(blank(t, {2, 5}), blank(t, {4}), blank(t, {5}));
       },
       {"layer_norm", "weight", "[4]", "[5]"}},
      {"a bias of another width",
       [](Tape& t) {
         layer_norm(blank(t, {2, 5}), blank(t, {5}), blank(t, {1}));
       },
       {"layer_norm", "bias", "[1]", "[5]"}},
      {"types differ",
       [](Tape& t) {
         layer_norm(blank(t, {2, 5}), blank(t, {5}, DType::kF64), blank(t, {5}));
       },
       {"layer_norm", "f32", "f64"}},
  };
  return made;
}

template <>
Row row<Op::rms_norm>() {
  Row made = rowwise_row(Op::rms_norm, "y = x/√(mean x² + ε)·weight", rms_norm_of);
  made.cases.push_back(rowwise(Op::rms_norm, {4, 1}, rms_norm_of));
  made.cases.push_back(rowwise(Op::rms_norm, {3, 67}, rms_norm_of, 99, 101));
  made.bad = {
      {"a weight of another width",
       [](Tape& t) {
         rms_norm(blank(t, {2, 5}), blank(t, {4}));
       },
       {"rms_norm", "weight", "[4]", "[5]"}},
      {"types differ",
       [](Tape& t) {
         rms_norm(blank(t, {2, 5}), blank(t, {5}, DType::kF64));
       },
       {"rms_norm", "f32", "f64"}},
  };
  return made;
}

}  // namespace regard::verify
