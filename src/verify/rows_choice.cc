// Rows of the table: operations that choose elements, leave them out, gate them, or add them up one after another.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "regard/autograd/ops.h"
#include "verify/table.h"

namespace regard::verify {
namespace {

// Ids below `width`, many of them more than once; those of an item do not depend on the other items.
std::int32_t id_at(std::int64_t item, std::int64_t place, std::int64_t width) {
  return static_cast<std::int32_t>((item * 5 + place * place * 7 + place / 3) % width);
}

Tensor ids_of(const Shape& shape, std::int64_t width, Items items) {
  Tensor ids = Tensor::empty(shape.with(0, items.count()), DType::kI32);
  const std::int64_t each = items.count() == 0 ? 0 : ids.size() / items.count();
  for (std::int64_t i = 0; i < ids.size(); ++i) {
    ids.data<std::int32_t>()[i] = id_at(items.begin + i / each, i % each, width);
  }
  return ids;
}

Case gathering(const Shape& shape, std::int64_t count) {
  Case made;
  made.name = text("gather ", count, " of ", shape);
  made.inputs = {{.name = "x", .shape = shape, .batched = shape.rank() > 1}};
  const auto ids = [=](Items items) {
    return ids_of(shape.with(-1, count), shape[-1], shape.rank() > 1 ? items : Items{0, count});
  };
  made.flat = count == 0;
  made.build = [=](Tape&, std::span<const Var> x, Items items) { return gather(x[0], ids(items)); };
  made.formula = [=](std::span<const Numbers> x, Items items) {
    const Tensor all = ids(items);
    std::vector<Scalar> y;
    for (std::int64_t i = 0; i < all.size(); ++i) {
      y.push_back(x[0][i / count * shape[-1] + all.data<std::int32_t>()[i]]);
    }
    return y;
  };
  return made;
}

Case scattering(const Shape& shape, std::int64_t size) {
  Case made;
  made.name = text("scatter_add ", shape, " into ", size);
  made.inputs = {{.name = "x", .shape = shape, .batched = shape.rank() > 1}};
  const auto ids = [=](Items items) { return ids_of(shape, size, shape.rank() > 1 ? items : Items{0, shape[0]}); };
  made.build = [=](Tape&, std::span<const Var> x, Items items) { return scatter_add(x[0], ids(items), size); };
  made.formula = [=](std::span<const Numbers> x, Items items) {
    const Tensor all = ids(items);
    const std::int64_t width = shape[-1], rows = shape.row_count();
    std::vector<Scalar> y(static_cast<std::size_t>(rows * size));
    for (std::int64_t i = 0; i < all.size(); ++i) {
      y[static_cast<std::size_t>(i / width * size + all.data<std::int32_t>()[i])] += x[0][i];
    }
    return y;
  };
  return made;
}

// The numbers of a row, those that come first by size in front; NaN before all, of equals the first.
std::vector<std::int64_t> by_size(const Numbers& x, std::int64_t row, std::int64_t width) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(width));
  std::iota(order.begin(), order.end(), row * width);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    const double left = x[a].value, right = x[b].value;
    if (std::isnan(left) || std::isnan(right)) return std::isnan(left) && !std::isnan(right);
    return left > right;
  });
  return order;
}

// The range is wide, so that finite differences do not change the order.
Case largest(Op op, const Shape& shape, std::int64_t k) {
  Case made;
  made.name = op == Op::max ? text("max of ", shape) : text("top_k ", k, " of ", shape);
  made.inputs = {{.name = "x", .shape = shape, .low = -100, .high = 100, .batched = shape.rank() > 1}};
  made.flat = k == 0;
  made.build = [=](Tape&, std::span<const Var> x, Items) {
    return op == Op::max ? max(x[0]).values : top_k(x[0], k).values;
  };
  made.formula = [=](std::span<const Numbers> x, Items) {
    std::vector<Scalar> y;
    for (std::int64_t row = 0; row < shape.row_count(); ++row) {
      const std::vector<std::int64_t> order = by_size(x[0], row, shape[-1]);
      for (std::int64_t i = 0; i < k; ++i) y.push_back(x[0][order[static_cast<std::size_t>(i)]]);
    }
    return y;
  };
  return made;
}

std::int8_t mask_at(std::int64_t i) { return (i * i + i / 5) % 3 == 0 ? std::int8_t{0} : std::int8_t{1}; }

Case masking(const Shape& shape, const Shape& mask, double value) {
  Case made;
  made.name = text("masked_fill ", shape, " by ", mask, " with ", value);
  const bool batched = shape.rank() > 0 && (mask.rank() < shape.rank() || mask[0] == 1);  // every item has one mask
  made.inputs = {{.name = "x", .shape = shape, .batched = batched}};
  made.build = [=](Tape&, std::span<const Var> x, Items) {
    Tensor bytes = Tensor::empty(mask, DType::kI8);
    for (std::int64_t i = 0; i < bytes.size(); ++i) bytes.data<std::int8_t>()[i] = mask_at(i);
    return masked_fill(x[0], bytes, value);
  };
  made.formula = [=](std::span<const Numbers> x, Items) {
    std::vector<Scalar> y;
    for (std::int64_t i = 0; i < shape.size(); ++i) {
      std::int64_t rest = i, place = 0, step = 1;
      for (int d = 1; d <= shape.rank(); ++d) {
        if (d <= mask.rank() && mask[-d] != 1) place += rest % shape[-d] * step;
        if (d <= mask.rank()) step *= mask[-d];
        rest /= shape[-d];
      }
      y.push_back(mask_at(place) != 0 ? x[0][i] : Scalar(value));
    }
    return y;
  };
  return made;
}

Case running_sum(const Shape& shape, int dimension) {
  Case made;
  made.name = text("cumulative_sum of ", shape, " along ", dimension);
  made.inputs = {{.name = "x", .shape = shape, .batched = shape.index(dimension) > 0}};
  made.build = [=](Tape&, std::span<const Var> x, Items) { return cumulative_sum(x[0], dimension); };
  made.formula = [=](std::span<const Numbers> x, Items) {
    std::int64_t inner = 1;
    for (int i = shape.index(dimension) + 1; i < shape.rank(); ++i) inner *= shape[i];
    std::vector<Scalar> y;
    for (std::int64_t i = 0; i < shape.size(); ++i) {
      const bool first = i / inner % shape[dimension] == 0;
      y.push_back(first ? x[0][i] : y[static_cast<std::size_t>(i - inner)] + x[0][i]);
    }
    return y;
  };
  return made;
}

Case gating(const Shape& shape) {
  Case made;
  made.name = text("glu of ", shape);
  made.inputs = {{.name = "x", .shape = shape, .low = -3, .high = 3, .batched = shape.rank() > 1}};
  made.build = [](Tape&, std::span<const Var> x, Items) { return glu(x[0]); };
  made.formula = [=](std::span<const Numbers> x, Items) {
    const std::int64_t half = shape[-1] / 2;
    std::vector<Scalar> y;
    for (std::int64_t row = 0; row < shape.row_count(); ++row) {
      for (std::int64_t c = 0; c < half; ++c) {
        y.push_back(x[0][2 * row * half + c] * sigmoid(x[0][(2 * row + 1) * half + c]));
      }
    }
    return y;
  };
  return made;
}

Tensor some_ids(const Shape& shape, std::int32_t id, DType type = DType::kI32) {
  Tensor ids = Tensor::zeros(shape, type);
  if (type == DType::kI32 && ids.size() > 0) ids.data<std::int32_t>()[ids.size() - 1] = id;
  return ids;
}

}  // namespace

template <>
Row row<Op::gather>() {
  Row made{.op = Op::gather, .formula = "y[…, k] = x[…, ids[…, k]]", .cases = {}, .bad = {}, .large = {}};
  made.cases = {gathering({7}, 3),      gathering({1, 1}, 1),     gathering({3, 5}, 17), gathering({2, 3, 17}, 5),
                gathering({5, 64}, 65), gathering({65, 31}, 1),   gathering({0, 5}, 3),  gathering({3, 5}, 0),
                gathering({3, 0}, 0),   gathering({2, 1, 33}, 63)};
  made.large = {gathering({301, 129}, 131), gathering({3, 70001}, 20011)};
  made.bad = {
      {"an id past the end",
       [](Tape& t) {
         gather(blank(t, {2, 3}), some_ids({2, 2}, 3));
       },
       {"gather", "3", "0 to 2"}},
      {"an id below zero",
       [](Tape& t) {
         gather(blank(t, {2, 3}), some_ids({2, 2}, -1));
       },
       {"gather", "-1", "0 to 2"}},
      {"ids of another type",
       [](Tape& t) {
         gather(blank(t, {2, 3}), some_ids({2, 2}, 0, DType::kF32));
       },
       {"gather", "f32", "i32"}},
      {"other leading sizes",
       [](Tape& t) {
         gather(blank(t, {2, 3}), some_ids({3, 2}, 0));
       },
       {"gather", "[3, 2]", "[2, 3]"}},
      {"a single number", [](Tape& t) { gather(blank(t, {}), some_ids({}, 0)); }, {"gather", "[]"}},
  };
  return made;
}

template <>
Row row<Op::scatter_add>() {
  Row made{.op = Op::scatter_add, .formula = "y[…, ids[…, k]] += x[…, k]", .cases = {}, .bad = {}, .large = {}};
  made.cases = {scattering({7}, 3),      scattering({1, 1}, 1),   scattering({3, 5}, 17), scattering({2, 3, 17}, 5),
                scattering({5, 64}, 65), scattering({65, 31}, 1), scattering({0, 5}, 3),  scattering({3, 0}, 4),
                scattering({3, 0}, 0),   scattering({2, 63}, 2)};
  made.large = {scattering({301, 131}, 129), scattering({3, 20011}, 70001)};
  made.bad = {
      {"an id past the end",
       [](Tape& t) {
         scatter_add(blank(t, {2, 2}), some_ids({2, 2}, 3), 3);
       },
       {"scatter_add", "3", "0 to 2"}},
      {"ids of another shape",
       [](Tape& t) {
         scatter_add(blank(t, {2, 3}), some_ids({2, 2}, 0), 3);
       },
       {"scatter_add", "[2, 2]", "[2, 3]"}},
      {"ids of another type",
       [](Tape& t) {
         scatter_add(blank(t, {2, 2}), some_ids({2, 2}, 0, DType::kF32), 3);
       },
       {"scatter_add", "f32", "i32"}},
      {"a size below zero",
       [](Tape& t) {
         scatter_add(blank(t, {2, 0}), some_ids({2, 0}, 0), -1);
       },
       {"scatter_add", "-1"}},
  };
  return made;
}

template <>
Row row<Op::max>() {
  Row made{.op = Op::max, .formula = "y = max x over the last dimension", .cases = {}, .bad = {}, .large = {}};
  for (const Shape& shape :
       {Shape{7}, {1, 1}, {3, 5}, {2, 3, 15}, {5, 16}, {7, 17}, {3, 63}, {2, 65}, {0, 5}, {0, 0}}) {
    made.cases.push_back(largest(Op::max, shape, 1));
  }
  made.large = {largest(Op::max, {301, 517}, 1), largest(Op::max, {2, 70001}, 1)};
  made.bad = {
      {"nothing to choose from",
       [](Tape& t) {
         max(blank(t, {2, 0}));
       },
       {"[2, 0]"}},
      {"a single number", [](Tape& t) { max(blank(t, {})); }, {"[]"}},
      {"whole numbers",
       [](Tape& t) {
         max(blank(t, {2, 3}, DType::kI32));
       },
       {"i32"}},
  };
  return made;
}

template <>
Row row<Op::top_k>() {
  Row made{.op = Op::top_k, .formula = "y = the k largest x, largest first", .cases = {}, .bad = {}, .large = {}};
  made.cases = {largest(Op::top_k, {7}, 3),        largest(Op::top_k, {1, 1}, 1),  largest(Op::top_k, {3, 5}, 5),
                largest(Op::top_k, {2, 3, 17}, 2), largest(Op::top_k, {5, 64}, 7), largest(Op::top_k, {3, 65}, 16),
                largest(Op::top_k, {0, 5}, 2),     largest(Op::top_k, {3, 5}, 0),  largest(Op::top_k, {3, 0}, 0),
                largest(Op::top_k, {2, 33}, 33),   largest(Op::top_k, {31, 63}, 1)};
  made.large = {largest(Op::top_k, {301, 517}, 13), largest(Op::top_k, {2, 70001}, 65)};
  made.bad = {
      {"more than there are",
       [](Tape& t) {
         top_k(blank(t, {2, 3}), 4);
       },
       {"top_k", "4", "[2, 3]", "0 to 3"}},
      {"fewer than none",
       [](Tape& t) {
         top_k(blank(t, {2, 3}), -1);
       },
       {"top_k", "-1", "[2, 3]"}},
      {"a single number", [](Tape& t) { top_k(blank(t, {}), 1); }, {"top_k", "[]"}},
      {"whole numbers",
       [](Tape& t) {
         top_k(blank(t, {2, 3}, DType::kI32), 1);
       },
       {"i32"}},
  };
  return made;
}

template <>
Row row<Op::masked_fill>() {
  Row made{.op = Op::masked_fill, .formula = "y = mask ? x : value", .cases = {}, .bad = {}, .large = {}};
  made.cases = {masking({7}, {7}, 2),         masking({1, 1}, {1}, 0.5),        masking({3, 5}, {5}, -1),
                masking({3, 17}, {3, 17}, 0), masking({2, 3, 65}, {3, 1}, 1),   masking({5, 63}, {}, 1),
                masking({0, 5}, {5}, 1),      masking({31, 16}, {1, 16}, 0.25), masking({4, 0}, {1, 0}, 1)};
  for (Case& each : made.cases) {
    if (each.name.starts_with("masked_fill [5, 63]") || each.name.starts_with("masked_fill [1, 1]")) each.flat = true;
  }
  made.large = {masking({301, 517}, {301, 517}, 1), masking({301, 517}, {517}, -2)};
  const auto bytes = [](const Shape& shape) { return Tensor::zeros(shape, DType::kI8); };
  made.bad = {
      {"a mask of another type",
       [](Tape& t) {
         masked_fill(blank(t, {2, 3}), Tensor::zeros({2, 3}), 0);
       },
       {"masked_fill", "f32", "i8"}},
      {"a mask of another shape",
       [=](Tape& t) {
         masked_fill(blank(t, {2, 3}), bytes({2, 4}), 0);
       },
       {"masked_fill", "[2, 3]", "[2, 4]"}},
      {"a mask larger than x",
       [=](Tape& t) {
         masked_fill(blank(t, {3}), bytes({2, 3}), 0);
       },
       {"masked_fill", "[2, 3]", "[3]"}},
  };
  return made;
}

template <>
Row row<Op::cumulative_sum>() {
  Row made{.op = Op::cumulative_sum, .formula = "y_i = Σ_{j ≤ i} x_j", .cases = {}, .bad = {}, .large = {}};
  made.cases = {running_sum({7}, 0),      running_sum({1, 1}, 1),     running_sum({3, 5}, 1),
                running_sum({3, 5}, 0),   running_sum({2, 3, 65}, 1), running_sum({5, 63}, -1),
                running_sum({17, 64}, 0), running_sum({257}, 0),      running_sum({0, 5}, 1),
                running_sum({3, 0}, 1),   running_sum({2, 31, 3}, -2)};
  made.large = {running_sum({301, 517}, 0), running_sum({301, 517}, 1)};
  made.bad = {
      {"a dimension too far",
       [](Tape& t) {
         cumulative_sum(blank(t, {2, 3}), 2);
       },
       {"2"}},
      {"a single number", [](Tape& t) { cumulative_sum(blank(t, {}), 0); }, {"0"}},
      {"whole numbers",
       [](Tape& t) {
         cumulative_sum(blank(t, {2, 3}, DType::kI32), 0);
       },
       {"i32"}},
  };
  return made;
}

template <>
Row row<Op::glu>() {
  Row made{.op = Op::glu, .formula = "y = a·σ(b), x = [a, b]", .cases = {}, .bad = {}, .large = {}};
  for (const Shape& shape :
       {Shape{14}, {1, 2}, {3, 10}, {2, 3, 34}, {5, 32}, {7, 30}, {2, 130}, {0, 6}, {3, 0}, {65, 126}}) {
    made.cases.push_back(gating(shape));
  }
  made.large = {gating({301, 514}), gating({3, 40002})};
  made.bad = {
      {"an odd size",
       [](Tape& t) {
         glu(blank(t, {2, 3}));
       },
       {"glu", "[2, 3]", "even"}},
      {"a single number", [](Tape& t) { glu(blank(t, {})); }, {"glu", "[]"}},
      {"whole numbers",
       [](Tape& t) {
         glu(blank(t, {2, 4}, DType::kI32));
       },
       {"i32"}},
  };
  return made;
}

}  // namespace regard::verify
