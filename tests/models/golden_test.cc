// One step of every family against PyTorch: loss, log-probabilities and every gradient. tests/golden/models.py made the
// numbers and says what is in models.txt.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/target.h"
#include "models/presets.h"
#include "support/paths.h"

namespace regard {
namespace {

struct Expected {
  std::string title;  // for messages
  ModelSettings settings;
  double loss = 0;
  struct LogProbability {
    std::size_t pair;
    std::int64_t step;
    double value;
  };
  std::vector<LogProbability> log_probabilities;
  struct Gradient {
    double sum, squares, first, last;
  };
  std::map<std::string, Gradient> gradients;
};

std::vector<Expected> read_golden() {
  std::vector<Expected> all;
  std::ifstream golden(source_path("/tests/golden/models.txt"));
  for (std::string line; std::getline(golden, line);) {
    std::istringstream words(line);
    std::string kind, name;
    words >> kind;
    if (kind == "model") {
      Expected& made = all.emplace_back();
      made.title = line;
      made.settings.source_words = made.settings.target_words = 9;
      words >> name;
      for (std::string each; words >> each;) {
        const std::size_t sign = each.find('=');
        set(made.settings, each.substr(0, sign), each.substr(sign + 1));
      }
    } else if (kind == "loss") {
      words >> all.back().loss;
    } else if (kind == "log_probability") {
      Expected::LogProbability& to = all.back().log_probabilities.emplace_back();
      words >> to.pair >> to.step >> to.value;
    } else if (kind == "gradient") {
      words >> name;
      Expected::Gradient& to = all.back().gradients[name];
      words >> to.sum >> to.squares >> to.first >> to.last;
    }
  }
  return all;
}

void fill(Parameters& parameters, DType type) {
  std::map<std::string, Parameter*> sorted;
  for (Parameter& parameter : parameters) sorted[parameter.name] = &parameter;
  int number = 0;
  for (const auto& [name, parameter] : sorted) {
    Tensor values = Tensor::empty(parameter->value.shape(), DType::kF64);
    for (std::int64_t i = 0; i < values.size(); ++i) {
      values.data<double>()[i] =
          (name.ends_with("norm.weight") ? 1 : 0) + 0.6 * std::sin(1 + 1.7 * number + 0.9 * static_cast<double>(i));
    }
    parameter->value.copy_from(values.to(type));
    ++number;
  }
}

void expect_golden(const Expected& expected, DType type, double tolerance, double gradient_tolerance) {
  Parameters parameters;
  const auto model = make_model(Builder(parameters, RandomKey(3), type), expected.settings);
  fill(parameters, type);
  const std::vector<SequencePair> pairs = {{.id = 0, .source = {3, 1, 4}, .target = {2, 5, 8, 3}},
                                           {.id = 1, .source = {1, 5, 8, 2, 6, 7, 0}, .target = {7, 2}},
                                           {.id = 2, .source = {8}, .target = {4}},
                                           {.id = 3, .source = {2, 7, 2, 3}, .target = {}}};
  const Batch batch = make_batch(pairs, {});
  Gradients gradients(parameters);
  Tape tape(gradients);
  const SequenceModel::Loss result = model->loss(tape, batch, {.label_smoothing = 0.1});
  const Tensor log_p = result.log_probabilities.to(DType::kF64);
  tape.backward(result.sum);
  gradients.settle();

  const auto expect = [](double got, double wanted, double gate, const std::string& what) {
    EXPECT_NEAR(got, wanted, gate + gate * std::fabs(wanted)) << what;
  };
  expect(result.sum.value().item(), expected.loss, tolerance, "loss");
  EXPECT_EQ(expected.log_probabilities.size(), 11u);
  for (const auto& [pair, step, value] : expected.log_probabilities) {
    const auto row = std::find(batch.order.begin(), batch.order.end(), pair) - batch.order.begin();
    expect(log_p.data<double>()[step * batch.size() + row], value, tolerance, "a log-probability");
  }
  EXPECT_EQ(expected.gradients.size(), parameters.size());
  for (const Parameter& parameter : parameters) {
    ASSERT_TRUE(expected.gradients.contains(parameter.name)) << parameter.name;
    const auto& [sum, squares, first, last] = expected.gradients.at(parameter.name);
    const Tensor gradient = gradients.of(parameter).to(DType::kF64);
    const double* g = gradient.data<double>();
    const std::int64_t count = gradient.size();
    expect(std::accumulate(g, g + count, 0.0), sum, gradient_tolerance, parameter.name);
    expect(std::inner_product(g, g + count, g, 0.0), squares, gradient_tolerance, parameter.name);
    expect(g[0], first, gradient_tolerance, parameter.name);
    expect(g[count - 1], last, gradient_tolerance, parameter.name);
  }
}

TEST(ModelFamilies, AgreeWithPyTorch) {
  const std::vector<Expected> all = read_golden();
  EXPECT_EQ(all.size(), 11u);
  for (const Expected& each : all) {
    SCOPED_TRACE(each.title);
    expect_golden(each, DType::kF64, 1e-11, 1e-11);
    for (const std::string& name : targets()) {
      const TargetScope scope(name);
      expect_golden(each, DType::kF32, 1e-5, 1e-4);
    }
  }
}

}  // namespace
}  // namespace regard
