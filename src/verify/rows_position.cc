// Rows of the table: operations that know positions.
#include <cmath>

#include "base/check.h"
#include "regard/autograd/ops.h"
#include "verify/table.h"

namespace regard::verify {
namespace {

// Positions of rows that are not one after another; those of an item do not depend on the other items.
Tensor scattered(const Shape& shape, Items items) {
  const Shape rows = shape.without(-1).with(0, items.count());
  Tensor made = Tensor::empty(rows, DType::kI32);
  const std::int64_t each = items.count() == 0 ? 0 : made.size() / items.count();
  for (std::int64_t i = 0; i < made.size(); ++i) {
    const std::int64_t item = items.begin + i / each, place = i % each;
    made.data<std::int32_t>()[i] = static_cast<std::int32_t>(item * 7 + place * place % 11 - 3);
  }
  return made;
}

Case turning(const Shape& shape, const RotaryOptions& options, bool own_positions = false) {
  Case made;
  made.name = own_positions ? text("rotary of ", shape, ", positions of its own")
                            : text("rotary of ", shape, " from ", options.first, ", base ", options.base);
  made.inputs = {{.name = "x", .shape = shape, .batched = shape.rank() > 2}};
  const auto positions = [=](Items items) { return own_positions ? scattered(shape, items) : Tensor(); };
  made.build = [=](Tape&, std::span<const Var> x, Items items) {
    RotaryOptions all = options;
    all.positions = positions(items);
    return rotary(x[0], all);
  };
  made.formula = [=](std::span<const Numbers> x, Items items) {
    const Tensor own = positions(items);
    std::vector<Scalar> y;
    const std::int64_t width = shape[-1];
    for (std::int64_t i = 0; i < x[0].size(); i += 2) {
      const std::int64_t row = i / width, pair = i % width / 2;
      const auto position =
          static_cast<double>(own_positions ? own.data<std::int32_t>()[row] : options.first + row % shape[-2]);
      const double angle =
          position * std::pow(options.base, -2 * static_cast<double>(pair) / static_cast<double>(width));
      const Scalar a = x[0][i], b = x[0][i + 1];
      y.push_back(std::cos(angle) * a - std::sin(angle) * b);
      y.push_back(std::sin(angle) * a + std::cos(angle) * b);
    }
    return y;
  };
  return made;
}

}  // namespace

template <>
Row row<Op::rotary>() {
  Row made{.op = Op::rotary,
           .formula = "pair i of x turned by position·base^(−2i/width)",
           .cases = {},
           .bad = {},
           .large = {}};
  made.cases = {turning({1, 2}, {}),
                turning({3, 2}, {.first = 1}),
                turning({5, 6}, {.first = 70}),
                turning({2, 3, 14}, {.first = -2}),
                turning({2, 7, 16}, {.first = 65533}),
                turning({3, 5, 18}, {.base = 7.5}),
                turning({2, 3, 4, 30}, {.base = 500000}),
                turning({2, 65, 34}, {}),
                turning({0, 3, 4}, {}),
                turning({2, 0, 4}, {}),
                turning({2, 3, 0}, {}),
                turning({3, 5, 8}, {}, true),
                turning({2, 3, 4, 6}, {}, true)};
  made.large = {turning({3, 70, 130}, {}), turning({301, 4, 64}, {.first = 11}), turning({31, 11, 66}, {}, true)};
  made.bad = {
      {"an odd width",
       [](Tape& t) {
         rotary(blank(t, {2, 3}));
       },
       {"rotary", "[2, 3]", "even"}},
      {"a single row", [](Tape& t) { rotary(blank(t, {4})); }, {"rotary", "[4]"}},
      {"whole numbers",
       [](Tape& t) {
         rotary(blank(t, {2, 4}, DType::kI32));
       },
       {"i32"}},
      {"positions of another type",
       [](Tape& t) {
         rotary(blank(t, {2, 4}), {.positions = Tensor::zeros({2})});
       },
       {"rotary", "f32", "i32"}},
      {"positions of another shape",
       [](Tape& t) {
         rotary(blank(t, {2, 4}), {.positions = Tensor::zeros({3}, DType::kI32)});
       },
       {"rotary", "[2]", "[3]"}},
      {"more positions than x",
       [](Tape& t) {
         rotary(blank(t, {2, 4}), {.positions = Tensor::zeros({5, 2}, DType::kI32)});
       },
       {"rotary", "[5, 2]", "[2]"}},
      {"positions twice",
       [](Tape& t) {
         rotary(blank(t, {2, 4}), {.first = 3, .positions = Tensor::zeros({2}, DType::kI32)});
       },
       {"rotary", "3"}},
      {"a position too far",
       [](Tape& t) {
         rotary(blank(t, {2, 4}), {.first = std::int64_t{1} << 60});
       },
       {"rotary", "1152921504606846976", "1099511627776"}},
      {"a base of nothing",
       [](Tape& t) {
         rotary(blank(t, {2, 4}), {.base = 0});
       },
       {"rotary", "base", "0"}},
  };
  return made;
}

}  // namespace regard::verify
