// bench overhead: what an operation on the tape costs beside its arithmetic: forward and backward on 64 numbers, where
// the arithmetic is next to nothing.
#include <algorithm>
#include <cmath>

#include "cli/bench.h"
#include "regard/autograd/ops.h"

namespace regard::cli {
namespace {

constexpr std::int64_t kSide = 8;  // 8 × 8 = 64 numbers

using Operation = Var (*)(Var x, Var w);

// Values and gradients of an operation on a tape that is used again and again.
struct Problem {
  Tape tape;
  Tensor x, w, seed;
  Floats output = Floats(2 * kSide * kSide);  // y, then the gradient of x

  void run(Operation operation) {
    tape.reset();
    const Var input = tape.variable(x), weight = tape.variable(w);
    const Var y = operation(input, weight);
    tape.backward(y, seed);
    std::copy_n(y.value().data<float>(), kSide * kSide, output.data());
    std::copy_n(tape.gradient(input).data<float>(), kSide * kSide, output.data() + kSide * kSide);
  }
};

Tensor square(std::span<const float> values) {
  Tensor made = Tensor::empty({kSide, kSide});
  std::copy_n(values.data(), values.size(), made.data<float>());
  return made;
}

Case operation_case(const char* name, Operation operation) {
  return {.name = name,
          .operation = std::string("overhead_") + name,
          .parameters = {{"side", kSide}},
          .peers = {"torch"},
          .tolerance = 1e-5,
          .prepare = [=] {
            constexpr auto kCount = static_cast<std::size_t>(kSide * kSide);
            const auto x = random_numbers(kCount, 1), w = random_numbers(kCount, 2), seed = random_numbers(kCount, 3);
            auto problem = std::make_shared<Problem>();
            problem->x = square(*x);
            problem->w = square(*w);
            problem->seed = square(*seed);
            auto wide = std::make_shared<Problem>();
            for (Tensor Problem::*each : {&Problem::x, &Problem::w, &Problem::seed}) {
              (*wide).*each = ((*problem).*each).to(DType::kF64);
            }
            return Job{.run = [=] { problem->run(operation); },
                       .gap =
                           [=] {  // the references, in double
                             Tape& tape = wide->tape;
                             tape.reset();
                             const Var input = tape.variable(wide->x);
                             const Var y = operation(input, tape.variable(wide->w));
                             tape.backward(y, wide->seed);
                             double gap = 0;
                             for (std::size_t i = 0; i < 2 * kCount; ++i) {
                               const double expected = i < kCount ? y.value().data<double>()[i]
                                                                  : tape.gradient(input).data<double>()[i - kCount];
                               const double apart =
                                   std::abs(problem->output[i] - expected) / (1e-5 * (1 + std::abs(expected)));
                               if (!(apart <= gap)) gap = apart;  // NaN stays
                             }
                             return gap;
                           },
                       .inputs = {{"x", *x}, {"w", *w}, {"seed", *seed}},
                       .output = [=]() -> std::span<const float> { return problem->output; },
                       .memory = {x, w, seed}};
          }};
}

std::vector<Case> cases() {
  return {operation_case("add", [](Var x, Var w) { return x + w; }),
          operation_case("multiply", [](Var x, Var w) { return x * w; }),
          operation_case("tanh", [](Var x, Var) { return tanh(x); }),
          operation_case("matmul", [](Var x, Var w) { return matmul(x, w); }),
          operation_case("chain", [](Var x, Var w) {  // 24 operations, so that what a step itself costs is shared
            for (int i = 0; i < 6; ++i) x = tanh(matmul(x, w) * x + w);
            return x;
          })};
}

const AddBench add({.name = "overhead", .summary = "an operation on the tape, beside its arithmetic", .cases = cases});

}  // namespace
}  // namespace regard::cli
