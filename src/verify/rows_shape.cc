// Rows of the table: operations that move numbers or add them up.
#include <array>
#include <numeric>

#include "base/check.h"
#include "regard/autograd/ops.h"
#include "verify/table.h"

namespace regard::verify {
namespace {

// A shape seen from one of its dimensions: [outer, size, inner].
struct Around {
  std::int64_t outer = 1, size = 1, inner = 1;
  Around(const Shape& shape, int dimension) : size(shape[dimension]) {
    const int at = shape.index(dimension);
    for (int i = 0; i < at; ++i) outer *= shape[i];
    for (int i = at + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
};

Case looking_up(const Shape& table, const Shape& shape, const std::vector<std::int32_t>& ids) {
  Case made;
  made.name = text("embedding ", table, " by ids ", shape);
  made.inputs = {{.name = "table", .shape = table}};
  made.build = [=](Tape&, std::span<const Var> x, Items) {
    Tensor tensor = Tensor::empty(shape, DType::kI32);
    std::copy(ids.begin(), ids.end(), tensor.data<std::int32_t>());
    return embedding(x[0], tensor);
  };
  made.formula = [ids, width = table[1]](std::span<const Numbers> x, Items) {
    std::vector<Scalar> y;
    for (const std::int32_t id : ids) {
      for (std::int64_t c = 0; c < width; ++c) y.push_back(x[0][id * width + c]);
    }
    return y;
  };
  return made;
}

std::vector<std::int32_t> spread_ids(std::size_t count, std::int32_t below) {  // many of them more than once
  std::vector<std::int32_t> ids(count);
  for (std::size_t i = 0; i < count; ++i)
    ids[i] = static_cast<std::int32_t>((i * i * 7 + i / 3) % static_cast<std::size_t>(below));
  return ids;
}

Case joining(const std::vector<Shape>& shapes, int dimension) {
  Case made;
  made.name = text("concat along ", dimension);
  for (const Shape& shape : shapes) {
    made.name += ' ' + to_text(shape);
    made.inputs.push_back({.name = "part", .shape = shape, .batched = shape.index(dimension) > 0});
  }
  made.build = [dimension](Tape&, std::span<const Var> x, Items) { return concat(x, dimension); };
  made.formula = [dimension](std::span<const Numbers> x, Items) {
    std::vector<Scalar> y;
    const std::int64_t outer = Around(x[0].shape, dimension).outer;
    for (std::int64_t i = 0; i < outer; ++i) {
      for (const Numbers& part : x) {
        const Around around(part.shape, dimension);
        for (std::int64_t j = 0; j < around.size * around.inner; ++j)
          y.push_back(part[i * around.size * around.inner + j]);
      }
    }
    return y;
  };
  return made;
}

Case cutting(const Shape& shape, int dimension, std::int64_t begin, std::int64_t end) {
  Case made;
  made.name = text("slice ", begin, "…", end, " of dimension ", dimension, " of ", shape);
  made.inputs = {{.name = "x", .shape = shape, .batched = shape.index(dimension) > 0}};
  made.build = [=](Tape&, std::span<const Var> x, Items) { return slice(x[0], dimension, begin, end); };
  made.formula = [=](std::span<const Numbers> x, Items) {
    std::vector<Scalar> y;
    const Around around(shape, dimension);
    for (std::int64_t i = 0; i < around.outer; ++i) {
      for (std::int64_t j = begin * around.inner; j < end * around.inner; ++j) {
        y.push_back(x[0][i * around.size * around.inner + j]);
      }
    }
    return y;
  };
  return made;
}

Case turning(const Shape& shape, int a, int b) {
  Case made;
  made.name = text("transpose ", a, " and ", b, " of ", shape);
  made.inputs = {{.name = "x", .shape = shape, .batched = shape.index(a) > 0 && shape.index(b) > 0}};
  made.build = [=](Tape&, std::span<const Var> x, Items) { return transpose(x[0], a, b); };
  made.output_batched = made.inputs[0].batched;
  made.formula = [=](std::span<const Numbers> x, Items) {
    Shape out = shape;
    std::swap(out[a], out[b]);
    std::vector<Scalar> y;
    for (std::int64_t i = 0; i < out.size(); ++i) {
      std::int64_t place[kMaxRank] = {}, rest = i, from = 0;
      for (int d = out.rank() - 1; d >= 0; --d) {
        place[d] = rest % out[d];
        rest /= out[d];
      }
      std::swap(place[out.index(a)], place[out.index(b)]);
      for (int d = 0; d < shape.rank(); ++d) from = from * shape[d] + place[d];
      y.push_back(x[0][from]);
    }
    return y;
  };
  return made;
}

// Where each number of sequences one after another stands when they are padded, in the order of the padded ones; -1 is
// padding.
std::vector<std::int64_t> padded_places(const std::vector<std::int32_t>& lengths, std::int64_t longest,
                                        std::int64_t heads, std::int64_t width) {
  std::vector<std::int64_t> from;
  std::int64_t begin = 0;
  for (const std::int32_t length : lengths) {
    for (std::int64_t i = 0; i < heads * longest * width; ++i) {
      const std::int64_t head = i / (longest * width), t = i / width % longest;
      from.push_back(t < length ? ((begin + t) * heads + head) * width + i % width : -1);
    }
    begin += length;
  }
  return from;
}

Case padding(const std::vector<std::int32_t>& lengths, std::int64_t longest, std::int64_t heads, std::int64_t width) {
  const std::int64_t rows = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  Case made;
  made.name = text("pad ", lengths.size(), " sequences of ", rows, " rows to ", longest, ", ", heads, " × ", width);
  made.inputs = {{.name = "x", .shape = {rows, heads * width}}};
  made.build = [=](Tape&, std::span<const Var> x, Items) { return pad_sequences(x[0], lengths, longest, heads); };
  made.formula = [=](std::span<const Numbers> x, Items) {
    std::vector<Scalar> y;
    for (const std::int64_t from : padded_places(lengths, longest, heads, width)) {
      y.push_back(from < 0 ? Scalar(0) : x[0][from]);
    }
    return y;
  };
  return made;
}

Case unpadding(const std::vector<std::int32_t>& lengths, std::int64_t longest, std::int64_t heads, std::int64_t width) {
  const auto items = static_cast<std::int64_t>(lengths.size());
  Case made;
  made.name = text("unpad ", lengths.size(), " sequences of ", longest, ", ", heads, " × ", width);
  made.inputs = {{.name = "x", .shape = {items, heads, longest, width}}};
  made.build = [=](Tape&, std::span<const Var> x, Items) { return unpad_sequences(x[0], lengths); };
  made.formula = [=](std::span<const Numbers> x, Items) {
    const std::int64_t rows = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    std::vector<Scalar> y(static_cast<std::size_t>(rows * heads * width));
    const std::vector<std::int64_t> from = padded_places(lengths, longest, heads, width);
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i] >= 0) y[static_cast<std::size_t>(from[i])] = x[0][static_cast<std::int64_t>(i)];
    }
    return y;
  };
  return made;
}

Case reshaping(const Shape& from, const Shape& to) {
  Case made;
  made.name = text("reshape ", from, " to ", to);
  made.inputs = {{.name = "x", .shape = from}};
  made.build = [to](Tape&, std::span<const Var> x, Items) { return reshape(x[0], to); };
  made.formula = [](std::span<const Numbers> x, Items) { return x[0].all; };
  return made;
}

constexpr int kAll = 1000;  // in place of a dimension: to a single number

Case adding_up(Op op, const Shape& shape, int dimension) {
  Case made;
  made.name = text(name_of(op), " of ", shape, dimension == kAll ? "" : text(" over dimension ", dimension));
  made.inputs = {{.name = "x", .shape = shape, .batched = dimension != kAll && shape.index(dimension) > 0}};
  made.build = [=](Tape&, std::span<const Var> x, Items) {
    if (op == Op::sum) return dimension == kAll ? sum(x[0]) : sum(x[0], dimension);
    return dimension == kAll ? mean(x[0]) : mean(x[0], dimension);
  };
  made.formula = [=](std::span<const Numbers> x, Items) {
    std::vector<Scalar> y;
    const Around around = dimension == kAll ? Around({shape.size()}, 0) : Around(shape, dimension);
    for (std::int64_t i = 0; i < around.outer; ++i) {
      for (std::int64_t k = 0; k < around.inner; ++k) {
        Scalar sum(0);
        for (std::int64_t j = 0; j < around.size; ++j) sum += x[0][(i * around.size + j) * around.inner + k];
        y.push_back(op == Op::sum ? sum : sum / Scalar(static_cast<double>(around.size)));
      }
    }
    return y;
  };
  return made;
}

Row adding_up_row(Op op, const char* words, Var (*over)(Var, int)) {
  Row made{.op = op, .formula = words, .cases = {}, .bad = {}, .large = {}};
  const auto add = [&](const Shape& shape, int dimension) { made.cases.push_back(adding_up(op, shape, dimension)); };
  for (const std::int64_t size : {1, 7, 15, 16, 17, 63, 65, 257, 4099}) add({size}, kAll);
  add({}, kAll);
  add({3, 5, 7}, kAll);
  add({3, 5, 7}, 0);
  add({3, 5, 7}, 1);
  add({3, 5, 7}, 2);
  add({3, 5, 7}, -1);
  add({1, 17}, 0);
  add({17, 1}, 0);
  add({17, 33}, 0);
  add({17, 33}, 1);
  add({2, 65, 63}, 1);
  add({3, 1027}, 0);
  add({67, 3}, 0);
  add({5}, 0);
  add({0, 3}, 1);
  add({3, 0}, 0);
  add({2, 1, 3}, 1);
  made.large.push_back(adding_up(op, {301, 517}, kAll));
  made.large.push_back(adding_up(op, {301, 517}, 0));
  made.large.push_back(adding_up(op, {301, 517}, 1));
  made.large.push_back(adding_up(op, {31, 65, 65}, 1));
  made.bad = {
      {"a dimension too far",
       [over](Tape& t) {
         over(blank(t, {2, 3}), 2);
       },
       {"2"}},
      {"a dimension before the first",
       [over](Tape& t) {
         over(blank(t, {2, 3}), -3);
       },
       {"-3"}},
      {"a dimension of a single number", [over](Tape& t) { over(blank(t, {}), 0); }, {"0"}},
      {"whole numbers",
       [over](Tape& t) {
         over(blank(t, {2, 3}, DType::kI32), 0);
       },
       {"i32"}},
  };
  return made;
}

}  // namespace

template <>
Row row<Op::embedding>() {
  Row made{.op = Op::embedding, .formula = "y[i] = table[ids[i]]", .cases = {}, .bad = {}, .large = {}};
  made.cases = {
      looking_up({5, 3}, {4}, {0, 4, 2, 1}),
      looking_up({1, 1}, {1}, {0}),
      looking_up({7, 17}, {2, 5}, {3, 3, 3, 0, 6, 6, 3, 1, 0, 3}),  // some more than once
      looking_up({3, 65}, {}, {2}),
      looking_up({4, 16}, {0}, {}),
      looking_up({4, 0}, {3}, {1, 1, 2}),
      looking_up({0, 5}, {2, 0}, {}),
      looking_up({31, 33}, {257}, spread_ids(257, 31)),
      looking_up({2, 63}, {65}, std::vector<std::int32_t>(65, 1)),
  };
  made.large = {looking_up({701, 129}, {2, 1009}, spread_ids(2018, 701))};
  const auto ids = [](std::initializer_list<std::int32_t> values) {
    return Tensor::of<std::int32_t>({static_cast<std::int64_t>(values.size())}, values);
  };
  made.bad = {
      {"an id past the end",
       [=](Tape& t) {
         embedding(blank(t, {5, 3}), ids({0, 5}));
       },
       {"embedding", "5", "0 to 4"}},
      {"an id below zero",
       [=](Tape& t) {
         embedding(blank(t, {5, 3}), ids({-1}));
       },
       {"embedding", "-1", "0 to 4"}},
      {"ids of another type",
       [](Tape& t) {
         embedding(blank(t, {5, 3}), Tensor::zeros({2}));
       },
       {"embedding", "f32", "i32"}},
      {"a table of one dimension", [=](Tape& t) { embedding(blank(t, {5}), ids({0})); }, {"embedding", "[5]"}},
  };
  return made;
}

template <>
Row row<Op::concat>() {
  Row made{.op = Op::concat, .formula = "y = [a, b, …] along a dimension", .cases = {}, .bad = {}, .large = {}};
  made.cases = {
      joining({{3}, {5}}, 0),
      joining({{1}}, 0),
      joining({{2, 3}, {4, 3}, {1, 3}}, 0),
      joining({{2, 3}, {2, 17}, {2, 1}}, 1),
      joining({{2, 3}, {2, 17}, {2, 1}}, -1),
      joining({{2, 3, 5}, {2, 1, 5}}, 1),
      joining({{2, 3, 63}, {2, 3, 65}}, -1),
      joining({{2, 0}, {2, 3}}, 1),
      joining({{0, 2}, {0, 3}}, 1),
      joining({{3, 0}, {2, 0}}, 0),
      joining({{33, 31}, {33, 33}}, 1),
  };
  made.large = {joining({{301, 129}, {301, 517}}, 1), joining({{301, 517}, {11, 517}}, 0)};
  made.bad = {
      {"no parts", [](Tape&) { concat(std::span<const Var>(), 0); }, {"concat"}},
      {"sizes differ",
       [](Tape& t) {
         concat({blank(t, {2, 3}), blank(t, {3, 3})}, 1);
       },
       {"concat", "[2, 3]", "[3, 3]"}},
      {"ranks differ",
       [](Tape& t) {
         concat({blank(t, {2, 3}), blank(t, {2})}, 0);
       },
       {"concat", "[2, 3]", "[2]"}},
      {"a dimension too far",
       [](Tape& t) {
         concat({blank(t, {2, 3}), blank(t, {2, 3})}, 2);
       },
       {"2"}},
      {"types differ",
       [](Tape& t) {
         concat({blank(t, {2, 3}), blank(t, {2, 3}, DType::kF64)}, 0);
       },
       {"concat", "f32", "f64"}},
  };
  return made;
}

template <>
Row row<Op::slice>() {
  Row made{.op = Op::slice, .formula = "y = x[begin…end] along a dimension", .cases = {}, .bad = {}, .large = {}};
  made.cases = {
      cutting({7}, 0, 2, 5),       cutting({7}, 0, 0, 7),          cutting({7}, 0, 3, 3),
      cutting({5, 17}, 0, 1, 2),   cutting({5, 17}, 1, 16, 17),    cutting({5, 17}, -1, 1, 17),
      cutting({3, 5, 7}, 1, 2, 5), cutting({3, 65, 63}, 1, 0, 64), cutting({2, 3, 65}, 2, 1, 64),
      cutting({0, 5}, 1, 1, 3),    cutting({5, 0}, 0, 1, 3),       cutting({1}, 0, 0, 1),
  };
  for (Case& each : made.cases) {
    if (each.name.starts_with("slice 3…3")) each.flat = true;
  }
  made.large = {cutting({301, 517}, 1, 3, 500), cutting({301, 517}, 0, 3, 290)};
  made.bad = {
      {"past the end",
       [](Tape& t) {
         slice(blank(t, {2, 3}), 1, 1, 4);
       },
       {"slice", "1…4", "[2, 3]"}},
      {"before the beginning",
       [](Tape& t) {
         slice(blank(t, {2, 3}), 1, -1, 2);
       },
       {"slice", "-1…2", "[2, 3]"}},
      {"the wrong way round",
       [](Tape& t) {
         slice(blank(t, {2, 3}), 1, 2, 1);
       },
       {"slice", "2…1", "[2, 3]"}},
      {"a dimension too far",
       [](Tape& t) {
         slice(blank(t, {2, 3}), 2, 0, 1);
       },
       {"2"}},
  };
  return made;
}

template <>
Row row<Op::transpose>() {
  Row made{.op = Op::transpose, .formula = "y[…i…j…] = x[…j…i…]", .cases = {}, .bad = {}, .large = {}};
  made.cases = {
      turning({1, 1}, 0, 1),        turning({3, 5}, 0, 1),    turning({17, 33}, 1, 0),  turning({63, 65}, 0, 1),
      turning({2, 3, 5}, 0, 2),     turning({2, 3, 5}, 1, 2), turning({2, 3, 5}, 0, 1), turning({2, 3, 4, 5}, 1, 2),
      turning({2, 3, 4, 5}, -1, 1), turning({3, 5}, 1, 1),    turning({0, 3}, 0, 1),    turning({2, 0, 3}, 1, 2),
      turning({7, 1}, 0, 1),
  };
  made.large = {turning({301, 517}, 0, 1), turning({5, 65, 7, 64}, 1, 2)};
  made.bad = {
      {"a dimension too far",
       [](Tape& t) {
         transpose(blank(t, {2, 3}), 0, 2);
       },
       {"2"}},
      {"a dimension before the first",
       [](Tape& t) {
         transpose(blank(t, {2, 3}), -3, 0);
       },
       {"-3"}},
      {"a single number", [](Tape& t) { transpose(blank(t, {}), 0, 0); }, {"0"}},
  };
  return made;
}

template <>
Row row<Op::pad_sequences>() {
  Row made{.op = Op::pad_sequences,
           .formula = "y[i, h, t] = x[Σ_{j<i} length_j + t, h], 0 from length_i on",
           .cases = {},
           .bad = {},
           .large = {}};
  made.cases = {padding({3, 1, 2}, 3, 2, 4), padding({2, 0, 5}, 6, 1, 3), padding({1}, 1, 1, 1),
                padding({0, 0}, 2, 2, 3),    padding({}, 4, 2, 3),        padding({3, 4}, 4, 3, 17)};
  made.large = {padding({31, 2, 17, 64, 9}, 64, 4, 33)};
  made.bad = {
      {"rows that the lengths do not know",
       [](Tape& t) {
         pad_sequences(blank(t, {5, 4}), std::array{2, 2}, 3, 2);
       },
       {"pad_sequences", "5", "4"}},
      {"a sequence longer than the longest",
       [](Tape& t) {
         pad_sequences(blank(t, {5, 4}), std::array{4, 1}, 3, 2);
       },
       {"sequence 0", "4", "3"}},
      {"a length below 0",
       [](Tape& t) {
         pad_sequences(blank(t, {2, 4}), std::array{3, -1}, 3, 2);
       },
       {"sequence 1", "-1"}},
      {"heads that do not divide",
       [](Tape& t) {
         pad_sequences(blank(t, {3, 4}), std::array{3}, 3, 3);
       },
       {"4", "3"}},
      {"three dimensions",
       [](Tape& t) {
         pad_sequences(blank(t, {3, 4, 2}), std::array{3}, 3);
       },
       {"[3, 4, 2]"}},
  };
  return made;
}

template <>
Row row<Op::unpad_sequences>() {
  Row made{.op = Op::unpad_sequences,
           .formula = "y[Σ_{j<i} length_j + t, h] = x[i, h, t] for t < length_i",
           .cases = {},
           .bad = {},
           .large = {}};
  made.cases = {unpadding({3, 1, 2}, 3, 2, 4), unpadding({2, 0, 5}, 6, 1, 3), unpadding({1}, 1, 1, 1),
                unpadding({0, 2}, 2, 2, 3),    unpadding({}, 4, 2, 3),        unpadding({3, 4}, 4, 3, 17)};
  made.large = {unpadding({31, 2, 17, 64, 9}, 64, 4, 33)};
  made.bad = {
      {"other items than lengths",
       [](Tape& t) {
         unpad_sequences(blank(t, {3, 2, 4, 5}), std::array{2, 2});
       },
       {"unpad_sequences", "2", "3"}},
      {"a sequence longer than there is room",
       [](Tape& t) {
         unpad_sequences(blank(t, {2, 2, 4, 5}), std::array{2, 5});
       },
       {"sequence 1", "5", "4"}},
      {"three dimensions",
       [](Tape& t) {
         unpad_sequences(blank(t, {2, 4, 5}), std::array{2, 2});
       },
       {"[2, 4, 5]"}},
  };
  return made;
}

template <>
Row row<Op::reshape>() {
  Row made{.op = Op::reshape, .formula = "y = x in another shape", .cases = {}, .bad = {}, .large = {}};
  made.cases = {
      reshaping({6}, {2, 3}),      reshaping({2, 3}, {3, 2}),      reshaping({1}, {}),
      reshaping({}, {1, 1}),       reshaping({2, 3, 65}, {6, 65}), reshaping({0, 3}, {5, 0}),
      reshaping({17, 4}, {2, 34}), reshaping({5, 63}, {5, 63}),
  };
  made.large = {reshaping({301, 517}, {517, 301})};
  made.bad = {
      {"more elements",
       [](Tape& t) {
         reshape(blank(t, {2, 3}), {7});
       },
       {"reshape", "[2, 3]", "[7]"}},
      {"none",
       [](Tape& t) {
         reshape(blank(t, {2, 3}), {0});
       },
       {"reshape", "[2, 3]", "[0]"}},
  };
  return made;
}

template <>
Row row<Op::sum>() {
  Row made = adding_up_row(Op::sum, "y = Σ x", sum);
  made.cases.push_back(adding_up(Op::sum, {0}, kAll));  // nothing adds up to 0
  made.cases.push_back(adding_up(Op::sum, {3, 0}, 1));
  made.cases.push_back(adding_up(Op::sum, {0, 3}, 0));
  return made;
}

template <>
Row row<Op::mean>() {
  return adding_up_row(Op::mean, "y = Σ x/n", mean);
}

}  // namespace regard::verify
