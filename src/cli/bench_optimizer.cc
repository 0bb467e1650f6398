// bench optimizer: a step of Adam over as many weights as a small translator has. Four numbers a weight are read
// (gradient, weight, two moments) and three written: 28 bytes, so memory is the limit.
#include <algorithm>
#include <cmath>

#include "cli/bench.h"
#include "kernels/optimizer.h"
#include "regard/train/optimizer.h"

namespace regard::cli {
namespace {

constexpr double kRate = 1e-3;

// `matrices` weights of [side, side], as parameters with gradients.
struct Model {
  Parameters parameters;
  std::unique_ptr<Gradients> gradients;
  std::unique_ptr<Adam> adam;

  Model(std::int64_t matrices, std::int64_t side, std::span<const float> weights, std::span<const float> slopes) {
    const std::int64_t each = side * side;
    for (std::int64_t i = 0; i < matrices; ++i) {
      Tensor value = Tensor::empty({side, side});
      std::copy_n(weights.data() + i * each, each, value.data<float>());
      parameters.add("weight" + std::to_string(i), value);
    }
    gradients = std::make_unique<Gradients>(parameters);
    gradients->settle();
    for (const Parameter& parameter : parameters) {
      std::copy_n(slopes.data() + static_cast<std::int64_t>(parameter.index) * each, each,
                  gradients->of(parameter).data<float>());
    }
    adam = std::make_unique<Adam>(parameters);
  }
};

Case adam_case(std::int64_t matrices, std::int64_t side, const char* limit) {
  const auto count = static_cast<std::size_t>(matrices * side * side);
  return {.name = "adam_" + std::to_string(matrices) + "x" + std::to_string(side) + "x" + std::to_string(side),
          .operation = "adam",
          .parameters = {{"matrices", matrices}, {"side", side}},
          .bytes = 28.0 * static_cast<double>(count),
          .limit = limit,
          .peers = {"torch"},
          .tolerance = 1e-6,
          .prepare = [=] {
            const auto weights = random_numbers(count, 1), slopes = random_numbers(count, 2);
            auto model = std::make_shared<Model>(matrices, side, *weights, *slopes);
            // A step changes what the next one starts from, so results are compared after the first.
            model->adam->step(*model->gradients, kRate);
            auto after = std::make_shared<Floats>();
            for (const Parameter& parameter : model->parameters) {
              const float* values = parameter.value.data<float>();
              after->insert(after->end(), values, values + parameter.value.size());
            }
            return Job{.run = [=] { model->adam->step(*model->gradients, kRate); },
                       .gap =
                           [=] {
                             double gap = 0;
                             const AdamNumbers<double> numbers = {.first_rest = 0.1,
                                                                  .second_keep = 0.999,
                                                                  .second_rest = 0.001,
                                                                  .rate = kRate / 0.1,
                                                                  .root_scale = 1 / std::sqrt(0.001),
                                                                  .epsilon = 1e-8};
                             for (std::size_t i = 0; i < count; i += 1 + count / 65536) {
                               double weight = (*weights)[i], first = 0, second = 0;
                               const double slope = (*slopes)[i];
                               reference::adam(&slope, &weight, &first, &second, 1, numbers);
                               const double apart = std::abs((*after)[i] - weight) / (2e-6 * (1 + std::abs(weight)));
                               if (!(apart <= gap)) gap = apart;  // NaN stays
                             }
                             return gap;
                           },
                       .inputs = {{"w", *weights}, {"g", *slopes}},
                       .output = [=]() -> std::span<const float> { return *after; },
                       .memory = {weights, slopes, after}};
          }};
}

std::vector<Case> cases() {
  return {adam_case(4, 64, "limits/update_64x512"), adam_case(20, 1000, "limits/update_16384x4096")};
}

const AddBench add({.name = "optimizer", .summary = "a step of Adam", .cases = cases});

}  // namespace
}  // namespace regard::cli
