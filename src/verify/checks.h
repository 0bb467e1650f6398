// What is done with a case of the table: draw its inputs, run the operation on f32 (the kernels) or f64 (the
// references), and compare with the scalar formula, with finite differences, and bit for bit.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "regard/autograd/parameter.h"
#include "verify/table.h"

namespace regard::verify {

// The gates.
inline constexpr double kKernelBound = 2e-6;  // f32 against f64: |Δ| ≤ this · (1 + Σ|terms|), forward and backward
inline constexpr double kReferenceBound = 1e-14;    // f64 against the scalar formula, likewise
inline constexpr double kGradientBound = 1e-7;      // gradient against finite differences: |Δ| ≤ this · max(1, |g|)
inline constexpr double kStep = 5e-4;               // of the finite differences
inline constexpr std::int64_t kFullJacobian = 200;  // below so many inputs each is moved by itself, else 3 directions

// Inputs in f32, as drawn, and the gradient that the output is given.
struct Data {
  std::vector<Tensor> inputs;
  Tensor seed;
};
Data draw(const Case& each, std::uint64_t seed = 1);

struct Result {
  Tensor output;
  std::vector<Tensor> gradients;  // not defined where an input gets none
};

struct Setting {
  DType type = DType::kF32;
  Items items = {0, -1};          // end −1: all
  std::vector<bool> frozen = {};  // by input; empty: none
  int passes = 1;                 // backward passes; gradients add up
  bool poison = false;            // the tape's memory holds NaN before the first step
};
Result run(const Case& each, const Data& data, const Setting& setting = {});

// The same with the inputs as parameters, which may be shared between threads.
void add_parameters(const Data& data, Parameters& parameters);
Result run(const Case& each, const Parameters& parameters, const Tensor& seed);

// The scalar formula: values, gradients, and the terms both were added up from. Exact to the last digits of f64.
struct Exact {
  std::vector<double> output, output_terms;
  std::vector<std::vector<double>> gradients, gradient_terms;
};
Exact exact(const Case& each, const Data& data);

// Differences as a fraction of the gate: above 1 is wrong. `where` names the worst element.
struct Worst {
  double forward = 0;
  double backward = 0;
  std::string where;

  bool good() const { return forward <= 1 && backward <= 1; }
  void take(const Worst& other);
};
// `passes`: how often the gradients were added up.
Worst compare(const Result& got, const Result& expected, const Exact& terms, double bound, int passes = 1);
Worst compare(const Result& got, const Exact& expected, double bound);

// The f64 gradient against central finite differences of the f64 forward pass.
struct GradientReport {
  double worst = 0;  // as a fraction of the gate
  std::int64_t checked = 0;
  std::int64_t skipped = 0;  // within ten steps of a kink
  bool any = false;          // some gradient is not zero
  std::string where;
};
GradientReport check_gradient(const Case& each, const Data& data);

bool same_bits(const Tensor& a, const Tensor& b);
std::string difference(const Result& a, const Result& b);  // "": the same bits; else where they part

// Everything that `regard verify` says about one operation.
struct Report {
  Op op;
  std::size_t cases = 0;
  Worst worst;
  std::string trouble;  // "": all is well
};
// On every target given; stop_if_asked between cases is up to the caller's `between`.
Report verify(const Row& row, std::span<const std::string> targets);

}  // namespace regard::verify
