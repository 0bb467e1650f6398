// Numbers that remember how they were made. An operation is written down once more as a plain formula over them, one
// number at a time; going back over the numbers gives its gradient by the chain rule alone, and with every value and
// gradient comes the sum of the magnitudes of the terms it was added up from. That sum is what the bound of a kernel is
// measured by: |difference| ≤ 2e-6·(1 + Σ|terms|).
//
//     ScalarTape tape;
//     Scalar a = tape.input(2), b = tape.input(3), y = a * b + a;
//     tape.backward({&y, 1}, {&one, 1});
//     tape.gradient(a);                                            // 4, from the terms |3| + |1|
//
// Terms go through a formula to first order: a sum adds up the terms of its parts, a product c = a·b has
// |a|·terms(b) + |b|·terms(a) + |c|, a function y = f(x) has |f′(x)|·terms(x) + |y|; an input has none.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace regard::verify {

struct Scalar {
  double value = 0;
  double terms = 0;
  std::int64_t place = -1;  // on the tape; −1: a constant

  Scalar() = default;
  Scalar(double constant) : value(constant) {}  // NOLINT: numbers in formulas
  double size() const { return std::max(std::abs(value), terms); }
};

class ScalarTape {
 public:
  ScalarTape() : before_(current()) { current() = this; }
  ~ScalarTape() { current() = before_; }
  ScalarTape(const ScalarTape&) = delete;
  ScalarTape& operator=(const ScalarTape&) = delete;

  Scalar input(double value) { return make(value, 0, {}, {}); }

  // What the gradient of one input of a step is multiplied by, and the terms that this factor was made of.
  struct Edge {
    std::int64_t from = -1;
    double slope = 0;
    double terms = 0;
  };
  static Scalar make(double value, double terms, const Edge& a, const Edge& b) {
    Scalar made(value);
    made.terms = terms;
    ScalarTape* tape = current();
    if (tape == nullptr) return made;
    made.place = static_cast<std::int64_t>(tape->steps_.size());
    tape->steps_.push_back({a, b});
    return made;
  }

  void backward(std::span<const Scalar> outputs, std::span<const double> seeds) {
    gradients_.assign(steps_.size(), 0.0);
    terms_.assign(steps_.size(), 0.0);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].place >= 0) arrive(static_cast<std::size_t>(outputs[i].place), seeds[i], 0);
    }
    for (std::size_t i = steps_.size(); i-- > 0;) {
      const double gradient = gradients_[i], terms = terms_[i];
      if (gradient == 0 && terms == 0) continue;
      for (const Edge& edge : steps_[i].edges) {
        if (edge.from < 0) continue;
        const double part = gradient * edge.slope;
        const bool passed_on = std::abs(edge.slope) == 1 && edge.terms == 0;  // no arithmetic
        arrive(static_cast<std::size_t>(edge.from), part,
               passed_on ? terms : std::abs(edge.slope) * terms + std::abs(gradient) * edge.terms + std::abs(part));
      }
    }
  }
  double gradient(const Scalar& of) const { return of.place < 0 ? 0 : gradients_[static_cast<std::size_t>(of.place)]; }
  double gradient_terms(const Scalar& of) const {
    return of.place < 0 ? 0 : terms_[static_cast<std::size_t>(of.place)];
  }

 private:
  void arrive(std::size_t to, double part, double terms) {
    double &gradient = gradients_[to], &so_far = terms_[to];
    const bool first = gradient == 0 && so_far == 0;
    so_far = first ? terms : std::max(so_far, std::abs(gradient)) + std::max(terms, std::abs(part));
    gradient += part;
  }

  struct Step {
    Edge edges[2];
  };
  static ScalarTape*& current() {
    static thread_local ScalarTape* tape = nullptr;
    return tape;
  }
  std::vector<Step> steps_;
  std::vector<double> gradients_, terms_;
  ScalarTape* before_;
};

inline Scalar operator+(const Scalar& a, const Scalar& b) {
  return ScalarTape::make(a.value + b.value, a.size() + b.size(), {a.place, 1, 0}, {b.place, 1, 0});
}
inline Scalar operator-(const Scalar& a, const Scalar& b) {
  return ScalarTape::make(a.value - b.value, a.size() + b.size(), {a.place, 1, 0}, {b.place, -1, 0});
}
inline Scalar operator-(const Scalar& a) { return ScalarTape::make(-a.value, a.terms, {a.place, -1, 0}, {}); }
inline Scalar operator*(const Scalar& a, const Scalar& b) {
  const double c = a.value * b.value;
  const double terms = std::abs(a.value) * b.terms + std::abs(b.value) * a.terms + std::abs(c);
  return ScalarTape::make(c, terms, {a.place, b.value, b.terms}, {b.place, a.value, a.terms});
}
inline Scalar operator/(const Scalar& a, const Scalar& b) {
  const double c = a.value / b.value, divisor = std::abs(b.value), relative = b.terms / divisor;
  const double terms = a.terms / divisor + std::abs(c) * (relative + 1);
  return ScalarTape::make(c, terms, {a.place, 1 / b.value, relative / divisor},
                          {b.place, -c / b.value, (a.terms / divisor + 2 * std::abs(c) * relative) / divisor});
}
inline Scalar& operator+=(Scalar& a, const Scalar& b) { return a = a + b; }

namespace detail {
// y = f(x) with its first and second derivative.
inline Scalar function(const Scalar& x, double y, double first, double second) {
  const double terms = std::abs(first) * x.terms + std::abs(y);
  return ScalarTape::make(y, terms, {x.place, first, std::abs(second) * x.terms}, {});
}
}  // namespace detail

inline Scalar exp(const Scalar& x) {
  const double y = std::exp(x.value);
  return detail::function(x, y, y, y);
}
inline Scalar log(const Scalar& x) {
  return detail::function(x, std::log(x.value), 1 / x.value, -1 / (x.value * x.value));
}
inline Scalar sqrt(const Scalar& x) {
  const double y = std::sqrt(x.value);
  return detail::function(x, y, 0.5 / y, -0.25 / (y * x.value));
}
// The slopes 1 − y² and y·(1 − y) are made from the rounded y: close to ±1 that costs far more than their own size.
inline Scalar tanh(const Scalar& x) {
  const double y = std::tanh(x.value), slope = 1 - y * y, terms = slope * x.terms + std::abs(y);
  return ScalarTape::make(y, terms, {x.place, slope, 2 * std::abs(y) * terms}, {});
}
inline Scalar sigmoid(const Scalar& x) {
  const double y = 1 / (1 + std::exp(-x.value)), slope = y * (1 - y), terms = slope * x.terms + y;
  return ScalarTape::make(y, terms, {x.place, slope, std::abs(1 - 2 * y) * terms}, {});
}
inline Scalar erf(const Scalar& x) {
  const double slope = 1.1283791670955126 * std::exp(-x.value * x.value);  // 2/√π
  return detail::function(x, std::erf(x.value), slope, -2 * x.value * slope);
}
// The value without the way it was made: the peak of a softmax, which takes part in the arithmetic but cancels out.
inline Scalar without_gradient(const Scalar& x) {
  Scalar result(x.value);
  result.terms = x.terms;
  return result;
}

}  // namespace regard::verify
