// Rows of the table: products of matrices.
#include "base/check.h"
#include "regard/autograd/ops.h"
#include "verify/table.h"

namespace regard::verify {
namespace {

std::string name_of_case(const Shape& a, const Shape& b, const MatmulOptions& options, bool bias) {
  return text(a, options.transpose_a ? "ᵀ" : "", " × ", b, options.transpose_b ? "ᵀ" : "", bias ? " + bias" : "");
}

// a and b as they are stored.
Case product(const Shape& a, const Shape& b, const MatmulOptions& options = {}, bool bias = false) {
  const bool ta = options.transpose_a, tb = options.transpose_b;
  const std::int64_t m = a[ta ? -1 : -2], k = a[ta ? -2 : -1], n = b[tb ? -2 : -1];
  Case made;
  made.name = "matmul " + name_of_case(a, b, options, bias);
  made.inputs = {{.name = "a", .shape = a, .batched = a.rank() > 2 || !ta},
                 {.name = "b", .shape = b, .batched = b.rank() > 2}};
  if (bias) made.inputs.push_back({.name = "bias", .shape = {n}});
  made.output_batched = made.inputs[0].batched;
  made.build = [options, bias](Tape&, std::span<const Var> x, Items) {
    MatmulOptions with = options;
    if (bias) with.bias = x[2];
    return matmul(x[0], x[1], with);
  };
  made.formula = [=](std::span<const Numbers> x, Items) {
    std::vector<Scalar> y;
    const std::int64_t count = m * k == 0 ? a.with(-1, 1).with(-2, 1).size() : x[0].size() / (m * k);
    for (std::int64_t item = 0; item < count; ++item) {
      const std::int64_t at_a = item * m * k, at_b = b.rank() > 2 ? item * k * n : 0;
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          Scalar sum = bias ? x[2][j] : Scalar(0);
          for (std::int64_t l = 0; l < k; ++l) {
            sum += x[0][at_a + (ta ? l * m + i : i * k + l)] * x[1][at_b + (tb ? j * k + l : l * n + j)];
          }
          y.push_back(sum);
        }
      }
    }
    return y;
  };
  return made;
}

}  // namespace

template <>
Row row<Op::matmul>() {
  Row made{.op = Op::matmul, .formula = "y = a·b + bias", .cases = {}, .bad = {}, .large = {}};
  struct Size {
    std::int64_t m, n, k;
  };
  for (const Size& s : {Size{1, 1, 1}, Size{7, 13, 5}, Size{2, 17, 3}, Size{15, 33, 16}, Size{5, 63, 31},
                        Size{6, 64, 2}, Size{3, 65, 64}, Size{0, 3, 2}, Size{3, 0, 2}, Size{3, 2, 0}}) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        made.cases.push_back(product(ta ? Shape{s.k, s.m} : Shape{s.m, s.k}, tb ? Shape{s.n, s.k} : Shape{s.k, s.n},
                                     {.transpose_a = ta, .transpose_b = tb}, ta == tb));
      }
    }
  }
  made.cases.push_back(product({1, 1027}, {1027, 3}));          // a long sum
  made.cases.push_back(product({65, 67}, {67, 63}, {}, true));  // more rows than a block
  made.cases.push_back(product({2, 3, 5}, {5, 7}, {}, true));   // leading sizes, one matrix for all
  made.cases.push_back(product({2, 1, 3, 5}, {2, 1, 5, 7}));    // a matrix each
  made.cases.push_back(product({3, 4, 17}, {3, 5, 17}, {.transpose_b = true}));
  made.cases.push_back(product({3, 17, 4}, {3, 17, 5}, {.transpose_a = true}));
  made.cases.push_back(product({3, 17, 4}, {3, 5, 17}, {.transpose_a = true, .transpose_b = true}));
  made.cases.push_back(product({3, 17, 4}, {17, 5}, {.transpose_a = true}, true));  // transposed, one matrix for all
  made.cases.push_back(product({2, 2, 7, 5}, {3, 7}, {.transpose_a = true, .transpose_b = true}));
  made.cases.push_back(product({3, 4, 17}, {5, 17}, {.transpose_b = true}));
  made.cases.push_back(product({0, 4, 3}, {4, 5}, {.transpose_a = true}));
  made.cases.push_back(product({0, 4, 3}, {0, 3, 5}));
  made.cases.push_back(product({2, 4, 3}, {2, 3, 5}, {}, true));
  made.large.push_back(product({131, 259}, {259, 515}, {}, true));
  made.large.push_back(product({259, 131}, {515, 259}, {.transpose_a = true, .transpose_b = true}));
  made.large.push_back(product({7, 33, 65}, {7, 65, 129}));
  made.large.push_back(product({7, 65, 33}, {65, 129}, {.transpose_a = true}));
  made.bad = {
      {"inner sizes differ",
       [](Tape& t) {
         matmul(blank(t, {2, 3}), blank(t, {4, 5}));
       },
       {"matmul", "[2, 3]", "[4, 5]"}},
      {"inner sizes differ after a transposition",
       [](Tape& t) {
         matmul(blank(t, {2, 3}), blank(t, {3, 5}), {.transpose_b = true});
       },
       {"matmul", "[2, 3]", "[3, 5]", "transposed"}},
      {"a vector",
       [](Tape& t) {
         matmul(blank(t, {3}), blank(t, {3, 5}));
       },
       {"matmul", "[3]", "[3, 5]"}},
      {"a bias of another width",
       [](Tape& t) {
         matmul(blank(t, {2, 3}), blank(t, {3, 5}), {.bias = blank(t, {4})});
       },
       {"matmul", "bias", "[4]", "[5]"}},
      {"leading sizes differ",
       [](Tape& t) {
         matmul(blank(t, {2, 4, 3}), blank(t, {3, 3, 5}));
       },
       {"matmul", "[2, 4, 3]", "[3, 3, 5]"}},
      {"types differ",
       [](Tape& t) {
         matmul(blank(t, {2, 3}), blank(t, {3, 5}, DType::kF64));
       },
       {"matmul", "f32", "f64"}},
      {"whole numbers",
       [](Tape& t) {
         matmul(blank(t, {2, 3}, DType::kI32), blank(t, {3, 5}, DType::kI32));
       },
       {"i32"}},
  };
  return made;
}

}  // namespace regard::verify
