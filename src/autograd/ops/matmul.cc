// y = a·b + bias:   da = dy·bᵀ   db = aᵀ·dy   dbias = Σ_rows dy
#include <algorithm>

#include "autograd/by_type.h"
#include "autograd/kernel_calls.h"
#include "autograd/weight_product.h"
#include "base/check.h"
#include "base/float_mode.h"
#include "kernels/gemm.h"
#include "regard/autograd/ops.h"

namespace regard {
namespace {

struct Sizes {
  std::size_t count = 1, m = 0, n = 0, k = 0;  // count products of [m, k]·[k, n]
  bool shared = true;                          // all rows of a lie one after another: one product with one b
  bool one_b = true;                           // the same b for every product
  Shape out;
};

Sizes sizes_of(const Shape& a, const Shape& b, const MatmulOptions& options) {
  check(a.rank() >= 2 && b.rank() >= 2, "matmul: ", a, " by ", b, ": expected at least two dimensions each");
  const bool ta = options.transpose_a, tb = options.transpose_b;
  Sizes s;
  const std::int64_t m = a[ta ? -1 : -2], k = a[ta ? -2 : -1], kb = b[tb ? -1 : -2], n = b[tb ? -2 : -1];
  check(k == kb, "matmul: ", a, ta ? " (transposed)" : "", " by ", b, tb ? " (transposed)" : "", ": ", k,
        " columns meet ", kb, " rows");
  s.out = a.with(-1, n).with(-2, m);
  s.n = static_cast<std::size_t>(n);
  s.k = static_cast<std::size_t>(k);
  std::int64_t leading = 1;
  for (int i = 0; i < a.rank() - 2; ++i) leading *= a[i];
  if (b.rank() == 2 && (!ta || a.rank() == 2)) {
    s.m = static_cast<std::size_t>(leading * m);
  } else {
    s.one_b = b.rank() == 2;
    check(s.one_b || (a.rank() == b.rank() && a.with(-1, 1).with(-2, 1) == b.with(-1, 1).with(-2, 1)), "matmul: ", a,
          " by ", b, ": expected the same leading sizes");
    s.count = static_cast<std::size_t>(leading);
    s.m = static_cast<std::size_t>(m);
    s.shared = false;
  }
  if (options.bias.defined()) {
    check(options.bias.shape() == Shape{n}, "matmul: the bias is ", options.bias.shape(), ", expected [", n, "]");
  }
  return s;
}

// An operand as its product sees it: [rows, columns] after the transposition, if there is one.
template <class T>
MatrixOf<const T> operand(const Tensor& x, std::size_t rows, std::size_t columns, bool transposed) {
  const T* data = x.data<T>();
  return transposed ? matrix(data, columns, rows).transposed() : matrix(data, rows, columns);
}

// c (= or +=) a·b, `count` times; a and b as seen by the product.
template <class T>
void multiply_all(std::size_t count, MatrixOf<const T> a, bool one_a, MatrixOf<const T> b, bool one_b, T* c,
                  const EpilogueOf<T>& epilogue) {
  const MatrixOf<T> out = matrix(c, a.rows, b.columns);
  if (count == 1) {
    gemm(a, b, out, epilogue);
  } else {
    gemm_batch(count, a, one_a ? 0 : a.rows * a.columns, b, one_b ? 0 : b.rows * b.columns, out, a.rows * b.columns,
               epilogue);
  }
}

// c (= or +=) the sum of the `count` products a·b: one chain through all of them.
template <class T>
void sum_products(std::size_t count, MatrixOf<const T> a, MatrixOf<const T> b, T* c, bool add) {
  if (count == 0 && !add) std::fill_n(c, a.rows * b.columns, T{0});
  for (std::size_t i = 0; i < count; ++i) {
    gemm(a, b, matrix(c, a.rows, b.columns), EpilogueOf<T>{.accumulate = add || i > 0});
    a.data += a.rows * a.columns;
    b.data += b.rows * b.columns;
  }
}

}  // namespace

Var matmul(Var a, Var b, const MatmulOptions& options) {
  const FloatMode mode;
  check_same_type(Op::matmul, {a, b, options.bias});
  const Sizes s = sizes_of(a.shape(), b.shape(), options);
  const bool ta = options.transpose_a, tb = options.transpose_b;
  const Var bias = options.bias;
  Tape& tape = a.tape();
  const Tensor y = tape.make(s.out, a.dtype());
  by_type(y.dtype(), [&]<class T>() {
    const EpilogueOf<T> epilogue{.bias = bias.defined() ? bias.value().data<T>() : nullptr};
    const auto left = operand<T>(a.value(), s.m, s.k, ta);
    if (s.shared) {
      multiply_by_weight<T>(tape, left, b, tb, y.data<T>(), epilogue);
    } else {
      multiply_all(s.count, left, false, operand<T>(b.value(), s.k, s.n, tb), s.one_b, y.data<T>(), epilogue);
    }
  });
  return tape.record(Op::matmul, y, {a, b, bias}, [=, &tape](const Tensor& dy) {
    by_type(dy.dtype(), [&]<class T>() {
      const auto left = operand<T>(a.value(), s.m, s.k, ta), right = operand<T>(b.value(), s.k, s.n, tb);
      const auto up = operand<T>(dy, s.m, s.n, false);
      if (const Target da = tape.target(a)) {
        const EpilogueOf<T> epilogue{.accumulate = da.add};
        T* out = da.gradient.data<T>();
        if (ta) {
          multiply_all(s.count, right, s.one_b, up.transposed(), false, out, epilogue);  // daᵀ is what is stored
        } else if (s.shared) {
          multiply_by_weight<T>(tape, up, b, !tb, out, epilogue);
        } else {
          multiply_all(s.count, up, false, right.transposed(), s.one_b, out, epilogue);
        }
      }
      if (const Target db = tape.target(b)) {
        const MatrixOf<const T> first = tb ? up.transposed() : left.transposed(), second = tb ? left : up;
        if (s.one_b) {
          sum_products(s.count, first, second, db.gradient.data<T>(), db.add);
        } else {
          multiply_all(s.count, first, false, second, false, db.gradient.data<T>(), {.accumulate = db.add});
        }
      }
      if (const Target dbias = tape.target(bias)) sum_to<T>(dy, dbias);
    });
  });
}

}  // namespace regard
