// bench cross_entropy: the last layer of a translation model and its loss, forward and backward, on a fresh step.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "cli/bench.h"
#include "regard/autograd/ops.h"

namespace regard::cli {
namespace {

constexpr std::int64_t kTokens = 2048, kWidth = 512;

// The largest distance of dx from the formula in double, for some of the rows, in units of what is allowed.
double gap(const Tensor& x, const Tensor& weight, const Tensor& targets, const Tensor& dx) {
  const std::int64_t words = weight[0];
  double worst = 0;
  for (std::int64_t row = 0; row < kTokens; row += kTokens / 8) {
    const float* in = x.data<float>() + row * kWidth;
    std::vector<double> p(static_cast<std::size_t>(words));
    double peak = -1e300, mass = 0;
    for (std::int64_t v = 0; v < words; ++v) {
      double sum = 0;
      for (std::int64_t c = 0; c < kWidth; ++c)
        sum += static_cast<double>(in[c]) * static_cast<double>(weight.data<float>()[v * kWidth + c]);
      p[static_cast<std::size_t>(v)] = sum;
      peak = std::max(peak, sum);
    }
    for (double& each : p) mass += each = std::exp(each - peak);
    for (double& each : p) each /= mass;
    p[static_cast<std::size_t>(targets.data<std::int32_t>()[row])] -= 1;
    for (std::int64_t c = 0; c < kWidth; c += 37) {
      double sum = 0, terms = 0;
      for (std::int64_t v = 0; v < words; ++v) {
        const double term = p[static_cast<std::size_t>(v)] * static_cast<double>(weight.data<float>()[v * kWidth + c]);
        sum += term;
        terms += std::abs(term);
      }
      // Logits are sums of 512 products themselves: their rounding comes first.
      const double allowed = 2e-5 * (1 + terms);
      const double apart = std::abs(static_cast<double>(dx.data<float>()[row * kWidth + c]) - sum) / allowed;
      if (!(apart <= worst)) worst = apart;
    }
  }
  return worst;
}

struct Layer {
  explicit Layer(std::int64_t words)
      : x(Tensor::empty({kTokens, kWidth})),
        targets(Tensor::empty({kTokens}, DType::kI32)),
        weight(parameters.add("weight", Tensor::empty({words, kWidth}))),
        bias(parameters.add("bias", Tensor::zeros({words}))),
        gradients(parameters),
        tape(gradients) {
    const auto fill = [](const Tensor& to, std::uint64_t seed) {
      const auto numbers = random_numbers(static_cast<std::size_t>(to.size()), seed);
      std::copy(numbers->begin(), numbers->end(), to.data<float>());
    };
    fill(x, 1);
    fill(weight.value, 2);
    for (std::int64_t i = 0; i < kTokens; ++i) {
      const auto id = static_cast<std::int32_t>((i * 7919 + 13) % words);
      targets.data<std::int32_t>()[i] = id;
      target_numbers.push_back(static_cast<float>(id));
    }
  }

  void run() {
    tape.reset();
    gradients.zero();
    input = tape.variable(x);
    const CrossEntropy entropy =
        linear_cross_entropy(input, tape.use(weight), tape.use(bias), targets, {.transposed = true});
    tape.backward(entropy.loss);
  }

  // dx, then the gradient of the weight.
  std::span<const float> output() {
    const Tensor &dx = tape.gradient(input), &dw = gradients.of(weight);
    all.assign(dx.data<float>(), dx.data<float>() + dx.size());
    all.insert(all.end(), dw.data<float>(), dw.data<float>() + dw.size());
    return all;
  }

  Tensor x, targets;
  Parameters parameters;
  const Parameter &weight, &bias;
  Gradients gradients;
  Tape tape;
  Var input;
  Floats target_numbers, all;
};

std::vector<Case> cases() {
  std::vector<Case> made;
  for (const std::int64_t words : {8192, 32768}) {
    made.push_back(
        {.name = text(kTokens, "x", kWidth, "x", words),
         .operation = "cross_entropy",
         .parameters = {{"rows", kTokens}, {"width", kWidth}, {"words", words}},
         .flops = 6.0 * static_cast<double>(kTokens * kWidth * words),
         .limit = "limits/fma",
         .peers = {"torch"},
         .tolerance = 1e-3,
         .memory = true,
         .prepare = [words] {
           const auto layer = std::make_shared<Layer>(words);
           const auto numbers = [](const Tensor& of) {
             return std::span<const float>(of.data<float>(), static_cast<std::size_t>(of.size()));
           };
           Job job;
           job.run = [layer] { layer->run(); };
           job.gap = [layer] {
             return gap(layer->x, layer->weight.value, layer->targets, layer->tape.gradient(layer->input));
           };
           job.inputs = {{"x", numbers(layer->x)}, {"w", numbers(layer->weight.value)}, {"t", layer->target_numbers}};
           job.output = [layer] { return layer->output(); };
           job.memory = {layer};
           return job;
         }});
  }
  return made;
}

const AddBench add({.name = "cross_entropy",
                    .summary = "the last layer and its loss, forward and backward; logits never held at once",
                    .cases = cases});

}  // namespace
}  // namespace regard::cli
