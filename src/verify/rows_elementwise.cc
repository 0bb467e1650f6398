// Rows of the table: arithmetic with broadcasting, functions of one number, dropout.
#include "base/check.h"
#include "regard/autograd/ops.h"
#include "regard/random.h"
#include "verify/table.h"

namespace regard::verify {
namespace {

// Which element of an operand of shape `from` stands at element i of the shape that it is spread to.
std::int64_t spread_index(const Shape& to, const Shape& from, std::int64_t i) {
  std::int64_t place = 0, step = 1;
  for (int d = 1; d <= to.rank(); ++d) {
    const std::int64_t at = i % to[-d];
    i /= to[-d];
    if (d > from.rank()) continue;
    if (from[-d] != 1) place += at * step;
    step *= from[-d];
  }
  return place;
}

using Two = Var (*)(Var, Var);
using TwoNumbers = Scalar (*)(const Scalar&, const Scalar&);

Case arithmetic(Op op, Two call, TwoNumbers formula, const Shape& a, const Shape& b, double low, double high) {
  const Shape out = broadcast(a, b, "the table");
  Case made;
  made.name = text(name_of(op), ' ', a, " and ", b);
  const auto batched = [&](const Shape& x) { return x.rank() > 0 && x.rank() == out.rank() && x[0] == out[0]; };
  made.inputs = {{.name = "a", .shape = a, .batched = batched(a)},
                 {.name = "b", .shape = b, .low = low, .high = high, .batched = batched(b)}};
  made.build = [call](Tape&, std::span<const Var> x, Items) { return call(x[0], x[1]); };
  made.formula = [=](std::span<const Numbers> x, Items) {
    std::vector<Scalar> y;
    for (std::int64_t i = 0; i < out.size(); ++i) {
      y.push_back(formula(x[0][spread_index(out, a, i)], x[1][spread_index(out, b, i)]));
    }
    return y;
  };
  return made;
}

Row arithmetic_row(Op op, const char* words, Two call, TwoNumbers formula, double low = -1, double high = 1) {
  Row made{.op = op, .formula = words, .cases = {}, .bad = {}, .large = {}};
  const auto add = [&](const Shape& a, const Shape& b) {
    made.cases.push_back(arithmetic(op, call, formula, a, b, low, high));
  };
  for (const std::int64_t size : {0, 1, 7, 15, 16, 17, 63, 64, 65, 257}) add({size}, {size});
  add({}, {});
  add({3, 5}, {});
  add({}, {3, 5});
  add({3, 5}, {5});
  add({17}, {33, 17});
  add({65, 1}, {65, 7});
  add({3, 17}, {3, 1});
  add({4, 1, 6}, {5, 1});
  add({2, 3, 1, 5}, {2, 1, 7, 5});
  add({1, 16}, {31, 1});
  add({0, 5}, {5});
  add({3, 1}, {3, 0});
  add({1}, {0});
  add({129, 33}, {33});
  made.large.push_back(arithmetic(op, call, formula, {301, 517}, {301, 517}, low, high));
  made.large.push_back(arithmetic(op, call, formula, {301, 517}, {517}, low, high));
  made.large.push_back(arithmetic(op, call, formula, {301, 1}, {301, 517}, low, high));
  made.bad = {
      {"sizes differ",
       [call](Tape& t) {
         call(blank(t, {2, 3}), blank(t, {2, 4}));
       },
       {name_of(op), "[2, 3]", "[2, 4]", "3 and 4"}},
      {"sizes differ in an outer dimension",
       [call](Tape& t) {
         call(blank(t, {2, 3, 5}), blank(t, {4, 1, 5}));
       },
       {name_of(op), "[2, 3, 5]", "[4, 1, 5]"}},
      {"0 against 2", [call](Tape& t) { call(blank(t, {0}), blank(t, {2})); }, {name_of(op), "[0]", "[2]"}},
      {"types differ",
       [call](Tape& t) { call(blank(t, {3}), blank(t, {3}, DType::kF64)); },
       {name_of(op), "f32", "f64"}},
      {"whole numbers", [call](Tape& t) { call(blank(t, {3}, DType::kI32), blank(t, {3}, DType::kI32)); }, {"i32"}},
  };
  return made;
}

using One = Var (*)(Var);
using OneNumber = Scalar (*)(const Scalar&);

Case function(Op op, One call, OneNumber formula, const Shape& shape, double low, double high,
              const std::vector<double>& kinks) {
  Case made;
  made.name = text(name_of(op), ' ', shape);
  made.inputs = {{.name = "x", .shape = shape, .low = low, .high = high, .kinks = kinks, .batched = shape.rank() > 0}};
  made.build = [call](Tape&, std::span<const Var> x, Items) { return call(x[0]); };
  made.formula = [formula](std::span<const Numbers> x, Items) {
    std::vector<Scalar> y;
    for (const Scalar& each : x[0].all) y.push_back(formula(each));
    return y;
  };
  return made;
}

Row function_row(Op op, const char* words, One call, OneNumber formula, double low, double high,
                 const std::vector<double>& kinks = {}) {
  Row made{.op = op, .formula = words, .cases = {}, .bad = {}, .large = {}};
  for (const Shape& shape : {Shape{0}, Shape{1}, Shape{13}, Shape{15}, Shape{16}, Shape{17}, Shape{31}, Shape{33},
                             Shape{63}, Shape{64}, Shape{65}, Shape{}, Shape{3, 5, 7}, Shape{2, 0, 3}, Shape{4099}}) {
    made.cases.push_back(function(op, call, formula, shape, low, high, kinks));
    made.cases.back().flat = !kinks.empty() && shape.size() == 1;  // one number may lie where the function is flat
  }
  made.large.push_back(function(op, call, formula, {211, 1021}, low, high, kinks));
  made.bad = {
      {"whole numbers", [call](Tape& t) { call(blank(t, {3}, DType::kI32)); }, {"i32"}},
      {"no value", [call](Tape&) { call(Var()); }, {"stands for nothing"}},
  };
  return made;
}

Case dropping(const Shape& shape, float p, std::vector<std::uint64_t> ids) {
  const RandomKey key = RandomKey(11).at(3);
  Case made;
  made.name = text("dropout ", shape, " p ", p, ids.empty() ? "" : " by id");
  made.inputs = {{.name = "x", .shape = shape, .batched = !ids.empty()}};
  made.build = [=](Tape&, std::span<const Var> x, Items items) {
    if (ids.empty()) return dropout(x[0], p, key);
    return dropout(
        x[0], p, key,
        std::span(ids).subspan(static_cast<std::size_t>(items.begin), static_cast<std::size_t>(items.count())));
  };
  made.formula = [=](std::span<const Numbers> x, Items) {
    std::vector<Scalar> y;
    const std::int64_t count = shape[0], width = count == 0 ? 0 : shape.size() / count;
    const Scalar scale(1 / (1 - static_cast<double>(p)));
    for (std::int64_t item = 0; item < count; ++item) {
      const auto id = ids.empty() ? static_cast<std::uint64_t>(item) : ids[static_cast<std::size_t>(item)];
      for (std::int64_t i = 0; i < width; ++i) {
        const bool kept = random_bits(key.at(id), static_cast<std::uint64_t>(i)) >= static_cast<double>(p) * 0x1p32;
        y.push_back(kept ? x[0][item * width + i] * scale : Scalar(0));
      }
    }
    return y;
  };
  return made;
}

}  // namespace

template <>
Row row<Op::add>() {
  return arithmetic_row(Op::add, "y = a + b", add, [](const Scalar& a, const Scalar& b) { return a + b; });
}
template <>
Row row<Op::subtract>() {
  return arithmetic_row(Op::subtract, "y = a − b", subtract, [](const Scalar& a, const Scalar& b) { return a - b; });
}
template <>
Row row<Op::multiply>() {
  return arithmetic_row(Op::multiply, "y = a·b", multiply, [](const Scalar& a, const Scalar& b) { return a * b; });
}
template <>
Row row<Op::divide>() {  // away from zero, where there is neither a value nor a slope
  return arithmetic_row(
      Op::divide, "y = a/b", divide, [](const Scalar& a, const Scalar& b) { return a / b; }, 0.5, 2.5);
}

template <>
Row row<Op::tanh>() {
  return function_row(
      Op::tanh, "y = tanh x", regard::tanh, [](const Scalar& x) { return tanh(x); }, -10, 10);
}
template <>
Row row<Op::sigmoid>() {
  return function_row(
      Op::sigmoid, "y = 1/(1 + exp −x)", regard::sigmoid, [](const Scalar& x) { return sigmoid(x); }, -20, 20);
}
template <>
Row row<Op::relu>() {
  return function_row(Op::relu, "y = max(x, 0)", regard::relu,
                      [](const Scalar& x) { return x.value <= 0 ? Scalar(0) : x; }, -2, 2, {0});
}
template <>
Row row<Op::gelu>() {
  return function_row(
      Op::gelu, "y = x·Φ(x)", regard::gelu,
      [](const Scalar& x) { return Scalar(0.5) * x * (Scalar(1) + erf(x * Scalar(std::sqrt(0.5)))); }, -8, 8);
}
template <>
Row row<Op::gelu_tanh>() {
  return function_row(
      Op::gelu_tanh, "y = x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))", regard::gelu_tanh,
      [](const Scalar& x) {
        const Scalar inner = Scalar(std::sqrt(2 / 3.14159265358979323846)) * (x + Scalar(0.044715) * x * x * x);
        return Scalar(0.5) * x * (Scalar(1) + tanh(inner));
      },
      -8, 8);
}
template <>
Row row<Op::silu>() {
  return function_row(
      Op::silu, "y = x/(1 + exp −x)", regard::silu, [](const Scalar& x) { return x * sigmoid(x); }, -20, 20);
}
template <>
Row row<Op::exp>() {
  return function_row(
      Op::exp, "y = exp x", regard::exp, [](const Scalar& x) { return exp(x); }, -20, 5);
}
template <>
Row row<Op::log>() {
  return function_row(
      Op::log, "y = log x", regard::log, [](const Scalar& x) { return log(x); }, 0.05, 20);
}

template <>
Row row<Op::dropout>() {
  Row made{.op = Op::dropout, .formula = "y = x/(1 − p) where kept, else 0", .cases = {}, .bad = {}, .large = {}};
  for (const Shape& shape :
       {Shape{0, 3}, Shape{3, 0}, Shape{1, 63}, Shape{3, 7}, Shape{2, 3, 16}, Shape{4, 65}, Shape{5, 129}, Shape{67}}) {
    made.cases.push_back(dropping(shape, 0.25f, {}));
  }
  made.cases.push_back(dropping({3, 17}, 0.0f, {}));
  made.cases.push_back(dropping({3, 33}, 0.5f, {900, 7, std::uint64_t{1} << 40}));
  made.cases.push_back(dropping({4, 5, 64}, 0.1f, {3, 3, 2, 1}));
  made.cases.push_back(dropping({2, 19}, 1.0f, {}));
  made.cases.back().flat = true;  // nothing is kept
  std::vector<std::uint64_t> many;
  for (std::uint64_t i = 0; i < 211; ++i) many.push_back(i * i);
  made.large.push_back(dropping({211, 1021}, 0.3f, many));
  made.bad = {
      {"p above 1",
       [](Tape& t) {
         dropout(blank(t, {2, 3}), 1.5f, RandomKey(1));
       },
       {"dropout", "1.5"}},
      {"p below 0",
       [](Tape& t) {
         dropout(blank(t, {2, 3}), -0.5f, RandomKey(1));
       },
       {"dropout", "-0.5"}},
      {"p is no number",
       [](Tape& t) {
         dropout(blank(t, {2, 3}), std::nanf(""), RandomKey(1));
       },
       {"dropout", "nan"}},
      {"fewer ids than items",
       [](Tape& t) {
         const std::uint64_t ids[] = {1};
         dropout(blank(t, {2, 3}), 0.5f, RandomKey(1), ids);
       },
       {"dropout", "1", "2"}},
  };
  return made;
}

}  // namespace regard::verify
