// Rows of the table: recurrent cells, and layers of them over whole sequences.
#include <algorithm>

#include "base/check.h"
#include "regard/autograd/ops.h"
#include "verify/table.h"

namespace regard::verify {
namespace {

Op op_of(Cell cell) { return cell == Cell::kTanh ? Op::tanh_cell : cell == Cell::kGru ? Op::gru_cell : Op::lstm_cell; }

std::int64_t gates(Cell cell) { return static_cast<std::int64_t>(gates_of(cell)); }

using Vector = std::vector<Scalar>;

Vector cut(const Numbers& x, std::int64_t begin, std::int64_t count) {
  return {x.all.begin() + begin, x.all.begin() + begin + count};
}

// start + v·matrix, matrix [v, start]
Vector affine(const Vector& v, const Numbers& matrix, const Numbers& start) {
  Vector y = start.all;
  for (std::size_t j = 0; j < y.size(); ++j) {
    for (std::size_t k = 0; k < v.size(); ++k) y[j] += v[k] * matrix.all[k * y.size() + j];
  }
  return y;
}

// The published equations, one row: h and c become those after the step.
void advance(Cell cell, const Vector& x, const Numbers& recurrent, const Numbers& bias, Vector& h, Vector& c) {
  const Vector u = affine(h, recurrent, bias);
  const std::size_t width = h.size();
  for (std::size_t i = 0; i < width; ++i) {
    const auto sum = [&](std::size_t gate) { return x[gate * width + i] + u[gate * width + i]; };
    switch (cell) {
      case Cell::kTanh:
        h[i] = tanh(sum(0));
        break;
      case Cell::kGru: {
        const Scalar r = sigmoid(sum(0)), z = sigmoid(sum(1));
        const Scalar n = tanh(x[2 * width + i] + r * u[2 * width + i]);
        h[i] = n + z * (h[i] - n);
        break;
      }
      case Cell::kLstm:
        c[i] = sigmoid(sum(1)) * c[i] + sigmoid(sum(0)) * tanh(sum(2));
        h[i] = sigmoid(sum(3)) * tanh(c[i]);
        break;
    }
  }
}

Case stepping(Cell cell, std::int64_t batch, std::int64_t width, std::int64_t active = -1) {
  const std::int64_t all = gates(cell) * width;
  const bool remembers = has_memory(cell);
  Case made;
  made.name =
      text(name_of(op_of(cell)), ' ', batch, " × ", width, active < 0 ? std::string() : text(", ", active, " active"));
  made.inputs = {{.name = "input", .shape = {batch, all}, .low = -2, .high = 2, .batched = true},
                 {.name = "state", .shape = {batch, width}, .batched = true},
                 {.name = "recurrent", .shape = {width, all}},
                 {.name = "bias", .shape = {all}}};
  if (remembers) made.inputs.push_back({.name = "memory", .shape = {batch, width}, .batched = true});
  const auto active_of = [active](Items items) {
    return active < 0 ? -1 : std::clamp<std::int64_t>(active - items.begin, 0, items.count());
  };
  made.build = [=](Tape&, std::span<const Var> x, Items items) {
    if (cell == Cell::kTanh) return tanh_cell(x[0], x[1], x[2], x[3], active_of(items));
    if (cell == Cell::kGru) return gru_cell(x[0], x[1], x[2], x[3], active_of(items));
    const RecurrentState after = lstm_cell(x[0], {x[1], x[4]}, x[2], x[3], active_of(items));
    return concat({after.state, after.memory}, 1);
  };
  made.formula = [=](std::span<const Numbers> x, Items items) {
    const std::int64_t alive = active_of(items) < 0 ? items.count() : active_of(items);
    Vector y;
    for (std::int64_t i = 0; i < items.count(); ++i) {
      Vector h = cut(x[1], i * width, width), c = remembers ? cut(x[4], i * width, width) : Vector();
      if (i < alive) advance(cell, cut(x[0], i * all, all), x[2], x[3], h, c);
      y.insert(y.end(), h.begin(), h.end());
      y.insert(y.end(), c.begin(), c.end());
    }
    return y;
  };
  return made;
}

Row stepping_row(Cell cell, const char* words, std::function<void(Tape&, Shape, Shape, Shape, Shape, DType)> call) {
  const std::string name = name_of(op_of(cell));
  const std::int64_t all = gates(cell) * 4;
  Row made{.op = op_of(cell), .formula = words, .cases = {}, .bad = {}, .large = {}};
  made.cases = {stepping(cell, 1, 1),    stepping(cell, 3, 5),    stepping(cell, 2, 16),    stepping(cell, 5, 17, 3),
                stepping(cell, 4, 7, 0), stepping(cell, 4, 7, 4), stepping(cell, 3, 31, 1), stepping(cell, 2, 33),
                stepping(cell, 0, 5),    stepping(cell, 3, 0),    stepping(cell, 7, 3, 6)};
  made.large = {stepping(cell, 129, 130), stepping(cell, 129, 130, 65)};
  const auto bad = [&](const char* what, Shape input, Shape state, Shape recurrent, Shape bias,
                       std::vector<std::string> expected, DType type = DType::kF32) {
    expected.push_back(name);
    made.bad.push_back({what, [=](Tape& t) { call(t, input, state, recurrent, bias, type); }, std::move(expected)});
  };
  bad("an input of another width", {2, all - 1}, {2, 4}, {4, all}, {all}, {"input", to_text(Shape{2, all})});
  bad("batches differ", {2, all}, {3, 4}, {4, all}, {all}, {to_text(Shape{2, all}), to_text(Shape{3, all})});
  bad("recurrent weights the wrong way round", {2, all}, {2, 4}, {all + 1, 4}, {all},
      {"recurrent", to_text(Shape{4, all})});
  bad("a bias of another width", {2, all}, {2, 4}, {4, all}, {5}, {"bias", "[5]", to_text(Shape{all})});
  bad("a state of three dimensions", {2, all}, {1, 2, 4}, {4, all}, {all}, {"state", "[1, 2, 4]"});
  bad("types differ", {2, all}, {2, 4}, {4, all}, {all}, {"f32", "f64"}, DType::kF64);
  return made;
}

struct Sequences {
  Cell cell;
  std::int64_t time, inputs, width;
  std::vector<std::int32_t> lengths;
  Direction direction = Direction::kForward;
  bool initial = false;
};

// Items come first here and time first in the operation. The result of an item: its states, its last state, its memory.
Case reading(const Sequences& s) {
  const auto batch = static_cast<std::int64_t>(s.lengths.size());
  const std::int64_t all = gates(s.cell) * s.width;
  const bool remembers = has_memory(s.cell);
  Case made;
  made.name =
      text("recurrence of ", name_of(op_of(s.cell)), "s ", s.direction == Direction::kForward ? "" : "backward, ",
           s.time, " × ", batch, " × ", s.inputs, " to ", s.width, s.initial ? ", initial state" : "",
           batch > 0 ? text(", shortest ", s.lengths.back()) : "");
  made.inputs = {{.name = "x", .shape = {batch, s.time, s.inputs}, .batched = true},
                 {.name = "input", .shape = {s.inputs, all}},
                 {.name = "input_bias", .shape = {all}},
                 {.name = "recurrent", .shape = {s.width, all}},
                 {.name = "recurrent_bias", .shape = {all}}};
  if (s.initial) made.inputs.push_back({.name = "state", .shape = {batch, s.width}, .batched = true});
  if (s.initial && remembers) made.inputs.push_back({.name = "memory", .shape = {batch, s.width}, .batched = true});
  made.build = [=](Tape&, std::span<const Var> x, Items items) {
    const auto lengths =
        std::span(s.lengths).subspan(static_cast<std::size_t>(items.begin), static_cast<std::size_t>(items.count()));
    const RecurrentState initial = {s.initial ? x[5] : Var(), s.initial && remembers ? x[6] : Var()};
    const Recurrence result =
        recurrence(s.cell, transpose(x[0], 0, 1), {x[1], x[2], x[3], x[4]}, lengths, s.direction, initial);
    const Var states = reshape(transpose(result.states, 0, 1), {items.count(), s.time * s.width});
    return remembers ? concat({states, result.last, result.memory}, 1) : concat({states, result.last}, 1);
  };
  made.formula = [=](std::span<const Numbers> x, Items items) {
    Vector y;
    for (std::int64_t i = 0; i < items.count(); ++i) {
      const std::int64_t length = s.lengths[static_cast<std::size_t>(items.begin + i)];
      const auto width = static_cast<std::size_t>(s.width);
      Vector h = s.initial ? cut(x[5], i * s.width, s.width) : Vector(width);
      Vector c = remembers && s.initial ? cut(x[6], i * s.width, s.width) : Vector(remembers ? width : 0);
      Vector states(static_cast<std::size_t>(s.time) * width);
      for (std::int64_t step = 0; step < length; ++step) {
        const std::int64_t t = s.direction == Direction::kForward ? step : length - 1 - step;
        const Vector projected = affine(cut(x[0], (i * s.time + t) * s.inputs, s.inputs), x[1], x[2]);
        advance(s.cell, projected, x[3], x[4], h, c);
        std::copy(h.begin(), h.end(), states.begin() + t * s.width);
      }
      y.insert(y.end(), states.begin(), states.end());
      y.insert(y.end(), h.begin(), h.end());
      y.insert(y.end(), c.begin(), c.end());
    }
    return y;
  };
  return made;
}

}  // namespace

template <>
Row row<Op::tanh_cell>() {
  return stepping_row(Cell::kTanh, "h′ = tanh(x + h·U + b)",
                      [](Tape& t, Shape input, Shape state, Shape recurrent, Shape bias, DType type) {
                        tanh_cell(blank(t, input), blank(t, state, type), blank(t, recurrent), blank(t, bias));
                      });
}

template <>
Row row<Op::gru_cell>() {
  Row made = stepping_row(Cell::kGru, "h′ = n + z·(h − n), n = tanh(x_n + r·u_n)",
                          [](Tape& t, Shape input, Shape state, Shape recurrent, Shape bias, DType type) {
                            gru_cell(blank(t, input), blank(t, state, type), blank(t, recurrent), blank(t, bias));
                          });
  made.bad.push_back({"more active rows than there are",
                      [](Tape& t) {
                        gru_cell(blank(t, {2, 12}), blank(t, {2, 4}), blank(t, {4, 12}), blank(t, {12}), 3);
                      },
                      {"gru_cell", "3", "2"}});
  return made;
}

template <>
Row row<Op::lstm_cell>() {
  Row made = stepping_row(
      Cell::kLstm, "c′ = f·c + i·g, h′ = o·tanh c′",
      [](Tape& t, Shape input, Shape state, Shape recurrent, Shape bias, DType type) {
        lstm_cell(blank(t, input), {blank(t, state, type), blank(t, state, type)}, blank(t, recurrent), blank(t, bias));
      });
  made.bad.push_back(
      {"a memory of another shape",
       [](Tape& t) {
         lstm_cell(blank(t, {2, 16}), {blank(t, {2, 4}), blank(t, {2, 3})}, blank(t, {4, 16}), blank(t, {16}));
       },
       {"lstm_cell", "memory", "[2, 3]", "[2, 4]"}});
  return made;
}

template <>
Row row<Op::recurrence>() {
  Row made{.op = Op::recurrence, .formula = "h_t = cell(x_t·W + b, h_{t∓1})", .cases = {}, .bad = {}, .large = {}};
  for (const Cell cell : {Cell::kTanh, Cell::kGru, Cell::kLstm}) {
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      const auto add = [&](std::int64_t time, std::int64_t inputs, std::int64_t width,
                           std::vector<std::int32_t> lengths, bool initial) {
        made.cases.push_back(reading({cell, time, inputs, width, std::move(lengths), direction, initial}));
      };
      add(1, 1, 1, {1}, true);
      add(4, 3, 5, {4, 4, 4}, false);
      add(5, 2, 3, {5, 3, 3, 1}, true);
      add(5, 3, 17, {4, 2, 0}, false);  // padded further than the longest; one is empty
      add(3, 2, 4, {2, 0, 0}, true);
      add(2, 7, 16, {2, 1}, true);
      add(7, 1, 2, {7, 6, 5, 4, 3, 2, 1}, true);
      add(0, 3, 4, {0, 0}, true);
      add(3, 3, 4, {}, false);
      add(2, 0, 3, {2, 1}, true);
      made.large.push_back(reading({cell, 5, 33, 65, std::vector<std::int32_t>(67, 4), direction, true}));
    }
  }
  std::vector<std::int32_t> falling;
  for (std::int32_t i = 0; i < 70; ++i) falling.push_back(9 - i / 8);
  made.large.push_back(reading({Cell::kGru, 9, 40, 63, falling, Direction::kForward, false}));
  made.large.push_back(reading({Cell::kLstm, 9, 40, 63, falling, Direction::kBackward, false}));
  const auto bad = [&](const char* what, const Shape& x, const Shape& input, const Shape& recurrent,
                       std::vector<std::int32_t> lengths, std::vector<std::string> expected) {
    expected.emplace_back("recurrence");
    made.bad.push_back({what,
                        [=](Tape& t) {
                          recurrence(Cell::kGru, blank(t, x),
                                     {blank(t, input), blank(t, {12}), blank(t, recurrent), blank(t, {12})}, lengths);
                        },
                        std::move(expected)});
  };
  bad("an input of two dimensions", {5, 3}, {3, 12}, {4, 12}, {5}, {"[5, 3]"});
  bad("input weights of another shape", {5, 2, 3}, {2, 12}, {4, 12}, {5, 5}, {"input", "[2, 12]", "[3, 12]"});
  bad("recurrent weights of another shape", {5, 2, 3}, {3, 12}, {4, 11}, {5, 5}, {"recurrent", "[4, 11]", "[4, 12]"});
  bad("fewer lengths than rows", {5, 2, 3}, {3, 12}, {4, 12}, {5}, {"1 lengths", "2"});
  bad("lengths that are not sorted", {5, 2, 3}, {3, 12}, {4, 12}, {4, 5}, {"sorted"});
  bad("a length above the time", {5, 2, 3}, {3, 12}, {4, 12}, {6, 5}, {"5 to 6", "0 to 5"});
  bad("a length below zero", {5, 2, 3}, {3, 12}, {4, 12}, {5, -1}, {"-1 to 5", "0 to 5"});
  made.bad.push_back({"a memory for a GRU",
                      [](Tape& t) {
                        recurrence(Cell::kGru, blank(t, {5, 2, 3}),
                                   {blank(t, {3, 12}), blank(t, {12}), blank(t, {4, 12}), blank(t, {12})},
                                   std::vector<std::int32_t>{5, 5}, Direction::kForward, {{}, blank(t, {2, 4})});
                      },
                      {"recurrence", "memory"}});
  made.bad.push_back({"an initial state of another shape",
                      [](Tape& t) {
                        recurrence(Cell::kGru, blank(t, {5, 2, 3}),
                                   {blank(t, {3, 12}), blank(t, {12}), blank(t, {4, 12}), blank(t, {12})},
                                   std::vector<std::int32_t>{5, 5}, Direction::kForward, {blank(t, {3, 4}), {}});
                      },
                      {"recurrence", "initial state", "[3, 4]", "[2, 4]"}});
  return made;
}

}  // namespace regard::verify
