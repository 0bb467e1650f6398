#include "verify/checks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "kernels/target.h"
#include "regard/random.h"

namespace regard::verify {
namespace {

std::uint64_t hash_of(const std::string& name) {  // FNV-1a: the same numbers for a case wherever it stands in the table
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  return hash;
}

Tensor random_tensor(const Shape& shape, double low, double high, RandomKey key) {
  Tensor result = Tensor::empty(shape);
  float* data = result.data<float>();
  for (std::int64_t i = 0; i < result.size(); ++i) {
    data[i] = static_cast<float>(low + (high - low) * static_cast<double>(uniform(key, static_cast<std::uint64_t>(i))));
  }
  return result;
}

Items all_items(const Case& each) { return {0, each.items()}; }

Tensor keep(const Tensor& x) { return x.defined() ? x.clone() : Tensor(); }

std::vector<double> numbers(const Tensor& x) {
  const Tensor wide = x.to(DType::kF64);
  return {wide.data<double>(), wide.data<double>() + wide.size()};
}

// |got − expected| as a fraction of bound · (1 + terms); what is not a number must be so on both sides.
double fraction(double got, double expected, double terms, double bound) {
  if (std::isnan(got) || std::isnan(expected)) {
    return std::isnan(got) && std::isnan(expected) ? 0 : std::numeric_limits<double>::infinity();
  }
  if (got == expected) return 0;
  return std::abs(got - expected) / (bound * (1 + terms));
}

struct Comparison {
  double worst = 0;
  std::string where;

  void add(const std::string& name, std::span<const double> got, std::span<const double> expected,
           std::span<const double> terms, double factor, double bound) {
    if (got.size() != expected.size() || got.size() != terms.size()) {
      worst = std::numeric_limits<double>::infinity();
      where = text(name, ": ", got.size(), " numbers, expected ", expected.size(), " and ", terms.size());
      return;
    }
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double want = factor * expected[i];
      const double share = fraction(got[i], want, factor * terms[i], bound);
      if (share <= worst) continue;
      worst = share;
      where = text(name, '[', i, "]: got ", got[i], ", expected ", want, ", terms ", factor * terms[i]);
    }
  }
};

Worst compare_numbers(const Result& got, const Exact& expected, const Exact& terms, double bound, int passes) {
  Comparison forward, backward;
  forward.add("output", numbers(got.output), expected.output, terms.output_terms, 1, bound);
  for (std::size_t i = 0; i < got.gradients.size(); ++i) {
    if (!got.gradients[i].defined()) continue;
    backward.add(text("gradient ", i), numbers(got.gradients[i]), expected.gradients[i], terms.gradient_terms[i],
                 passes, bound);
  }
  return {forward.worst, backward.worst, forward.worst >= backward.worst ? forward.where : backward.where};
}

}  // namespace

Data draw(const Case& each, std::uint64_t seed) {
  const RandomKey key = RandomKey(hash_of(each.name)).at(seed);
  Data data;
  for (std::size_t i = 0; i < each.inputs.size(); ++i) {
    const Input& input = each.inputs[i];
    data.inputs.push_back(random_tensor(input.shape, input.low, input.high, key.at(i)));
  }
  Tape tape;
  std::vector<Var> inputs;
  for (const Tensor& input : data.inputs) inputs.push_back(tape.constant(input));
  data.seed = random_tensor(each.build(tape, inputs, all_items(each)).shape(), -1, 1, key.at(each.inputs.size()));
  return data;
}

Result run(const Case& each, const Data& data, const Setting& setting) {
  const Items items = setting.items.end < 0 ? all_items(each) : setting.items;
  const auto share = [&](const Tensor& whole, bool batched) {
    return (batched && setting.items.end >= 0 ? whole.slice(0, items.begin, items.end) : whole).to(setting.type);
  };
  Tape tape;
  if (setting.poison) {
    const Tensor block = tape.make({(std::int64_t{1} << 18) - 64});
    std::fill_n(block.data<float>(), block.size(), std::numeric_limits<float>::quiet_NaN());
    tape.reset();
  }
  std::vector<Var> inputs;
  for (std::size_t i = 0; i < data.inputs.size(); ++i) {
    const Tensor value = share(data.inputs[i], each.inputs[i].batched);
    const bool frozen = !setting.frozen.empty() && setting.frozen[i];
    inputs.push_back(frozen ? tape.constant(value) : tape.variable(value));
  }
  const Var output = each.build(tape, inputs, items);
  const Tensor seed = share(data.seed, each.output_batched);
  for (int pass = 0; pass < setting.passes && output.needs_gradient(); ++pass) tape.backward(output, seed);
  Result result{.output = keep(output.value()), .gradients = {}};
  for (const Var& input : inputs) result.gradients.push_back(keep(tape.gradient(input)));
  return result;
}

void add_parameters(const Data& data, Parameters& parameters) {
  for (std::size_t i = 0; i < data.inputs.size(); ++i) parameters.add(text("input ", i), data.inputs[i].clone());
}

Result run(const Case& each, const Parameters& parameters, const Tensor& seed) {
  Gradients gradients(parameters);
  gradients.zero();
  Tape tape(gradients);
  std::vector<Var> inputs;
  for (const Parameter& parameter : parameters) inputs.push_back(tape.use(parameter));
  const Var output = each.build(tape, inputs, all_items(each));
  if (output.needs_gradient()) tape.backward(output, seed);
  gradients.settle();
  Result result{.output = keep(output.value()), .gradients = {}};
  for (const Parameter& parameter : parameters) {
    result.gradients.push_back(parameter.frozen ? Tensor() : keep(gradients.of(parameter)));
  }
  return result;
}

namespace {

// Of a case without a formula: the f64 references, and for the terms of a number what is typical beside it.
Exact exact_by_reference(const Case& each, const Data& data) {
  const Result reference = run(each, data, {.type = DType::kF64});
  const auto terms = [](const std::vector<double>& values) {
    double largest = 0;
    for (const double x : values) largest = std::max(largest, std::abs(x));
    std::vector<double> all;
    for (const double x : values) all.push_back(std::abs(x) + largest);
    return all;
  };
  Exact result;
  result.output = numbers(reference.output);
  result.output_terms = terms(result.output);
  for (const Tensor& gradient : reference.gradients) {
    result.gradients.push_back(numbers(gradient));
    result.gradient_terms.push_back(terms(result.gradients.back()));
  }
  return result;
}

}  // namespace

Exact exact(const Case& each, const Data& data) {
  if (!each.formula) return exact_by_reference(each, data);
  ScalarTape tape;
  std::vector<Numbers> inputs;
  for (const Tensor& input : data.inputs) {
    Numbers& made = inputs.emplace_back(Numbers{input.shape(), {}});
    for (const double value : numbers(input)) made.all.push_back(tape.input(value));
  }
  const std::vector<Scalar> output = each.formula(inputs, all_items(each));
  tape.backward(output, numbers(data.seed));
  Exact result;
  for (const Scalar& y : output) {
    result.output.push_back(y.value);
    result.output_terms.push_back(y.size());
  }
  for (const Numbers& input : inputs) {
    std::vector<double>& gradient = result.gradients.emplace_back();
    std::vector<double>& terms = result.gradient_terms.emplace_back();
    for (const Scalar& x : input.all) {
      gradient.push_back(tape.gradient(x));
      terms.push_back(std::max(std::abs(gradient.back()), tape.gradient_terms(x)));
    }
  }
  return result;
}

void Worst::take(const Worst& other) {
  if (std::max(other.forward, other.backward) > std::max(forward, backward)) where = other.where;
  forward = std::max(forward, other.forward);
  backward = std::max(backward, other.backward);
}

Worst compare(const Result& got, const Exact& expected, double bound) {
  return compare_numbers(got, expected, expected, bound, 1);
}

Worst compare(const Result& got, const Result& expected, const Exact& terms, double bound, int passes) {
  Exact values;
  values.output = numbers(expected.output);
  for (const Tensor& gradient : expected.gradients) {
    values.gradients.push_back(gradient.defined() ? numbers(gradient) : std::vector<double>());
  }
  return compare_numbers(got, values, terms, bound, passes);
}

GradientReport check_gradient(const Case& each, const Data& data) {
  GradientReport report;
  const Result analytic = run(each, data, {.type = DType::kF64});
  std::vector<Tensor> inputs;
  std::int64_t count = 0;
  for (const Tensor& input : data.inputs) {
    inputs.push_back(input.to(DType::kF64));
    count += input.size();
  }
  const std::vector<double> seed = numbers(data.seed);
  Tape tape;
  const auto loss = [&] {  // the seed's share of the output, all of it
    std::vector<Var> vars;
    for (const Tensor& input : inputs) vars.push_back(tape.constant(input));
    const Var output = each.build(tape, vars, all_items(each));
    const double* y = output.value().data<double>();
    long double sum = 0;
    for (std::size_t i = 0; i < seed.size(); ++i)
      sum += static_cast<long double>(seed[i]) * static_cast<long double>(y[i]);
    tape.reset();
    return sum;
  };
  // d/dt loss(x + t·direction) at t = 0, by the five-point rule.
  const auto slope = [&](std::size_t input, std::span<const std::pair<std::int64_t, double>> direction) {
    double* x = inputs[input].data<double>();
    const auto at = [&](double t) {
      for (const auto& [i, part] : direction) x[i] += t * part;
      const long double value = loss();
      const float* original = data.inputs[input].data<float>();
      for (const auto& [i, part] : direction) x[i] = static_cast<double>(original[i]);
      return value;
    };
    return static_cast<double>((8 * (at(kStep) - at(-kStep)) - (at(2 * kStep) - at(-2 * kStep))) /
                               (12 * static_cast<long double>(kStep)));
  };
  // Within ten steps of the point along a direction, is there another piece?
  const auto leaves_piece = [&](std::size_t input, std::span<const std::pair<std::int64_t, double>> direction) {
    if (!each.pieces) return false;
    double* x = inputs[input].data<double>();
    const auto at = [&](double t) {
      const float* original = data.inputs[input].data<float>();
      for (const auto& [i, part] : direction) x[i] = static_cast<double>(original[i]) + t * part;
      std::vector<Var> vars;
      for (const Tensor& value : inputs) vars.push_back(tape.constant(value));
      const std::vector<bool> piece = each.pieces(tape, vars, all_items(each));
      for (const auto& [i, part] : direction) x[i] = static_cast<double>(original[i]);
      tape.reset();
      return piece;
    };
    const std::vector<bool> here = at(0);
    return here != at(10 * kStep) || here != at(-10 * kStep);
  };
  for (std::size_t input = 0; input < inputs.size(); ++input) {
    const std::int64_t size = inputs[input].size();
    if (size == 0 || seed.empty()) continue;
    if (!analytic.gradients[input].defined()) {
      report.worst = std::numeric_limits<double>::infinity();
      report.where = text(each.inputs[input].name, " has no gradient");
      return report;
    }
    const std::vector<double> gradient = numbers(analytic.gradients[input]);
    for (const double g : gradient) report.any |= g != 0;
    const auto near_kink = [&](std::int64_t i) {
      const double x = inputs[input].data<double>()[i];
      return std::any_of(each.inputs[input].kinks.begin(), each.inputs[input].kinks.end(),
                         [&](double kink) { return std::abs(x - kink) <= 10 * kStep; });
    };
    const auto compare_slope = [&](double got, double found, const std::string& where) {
      const double share = std::isnan(got) || std::isnan(found)
                               ? std::numeric_limits<double>::infinity()
                               : std::abs(got - found) / (kGradientBound * std::max(1.0, std::abs(got)));
      if (share <= report.worst) return;
      report.worst = share;
      report.where = text(where, ": gradient ", got, ", finite differences ", found);
    };
    std::vector<std::pair<std::int64_t, double>> direction;
    if (count < kFullJacobian) {
      for (std::int64_t i = 0; i < size; ++i) {
        ++report.checked;
        if (near_kink(i)) {
          ++report.skipped;
          continue;
        }
        direction.assign(1, {i, 1.0});
        if (leaves_piece(input, direction)) {
          ++report.skipped;
          continue;
        }
        compare_slope(gradient[static_cast<std::size_t>(i)], slope(input, direction),
                      text(each.inputs[input].name, '[', i, ']'));
      }
      continue;
    }
    for (std::uint64_t turn = 0; turn < 3; ++turn) {
      const RandomKey key = RandomKey(hash_of(each.name)).at(1000 + turn).at(input);
      double squares = 0, expected = 0;
      direction.clear();
      for (std::int64_t i = 0; i < size; ++i) {
        const double part = normal(key, static_cast<std::uint64_t>(i));
        if (turn == 0) {
          ++report.checked;
          if (near_kink(i)) ++report.skipped;
        }
        if (near_kink(i)) continue;
        direction.emplace_back(i, part);
        squares += part * part;
      }
      for (auto& [i, part] : direction) {
        part /= std::sqrt(squares);
        expected += gradient[static_cast<std::size_t>(i)] * part;
      }
      if (leaves_piece(input, direction)) {
        report.skipped += (size + 2) / 3;
        continue;
      }
      compare_slope(expected, slope(input, direction), text(each.inputs[input].name, " in direction ", turn));
    }
  }
  return report;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

std::string difference(const Result& a, const Result& b) {
  const auto first = [](const std::string& name, const Tensor& x, const Tensor& y) -> std::string {
    if (same_bits(x, y)) return "";
    if (!x.defined() || !y.defined()) return text(name, ": only one of them exists");
    if (x.shape() != y.shape() || x.dtype() != y.dtype()) return text(name, ": ", x, " and ", y);
    const std::size_t unit = bytes_of(x.dtype());
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const std::size_t at = static_cast<std::size_t>(i) * unit;
      if (std::memcmp(x.raw() + at, y.raw() + at, unit) != 0) {
        return text(name, '[', i, "]: ", numbers(x)[static_cast<std::size_t>(i)], " and ",
                    numbers(y)[static_cast<std::size_t>(i)]);
      }
    }
    return "";
  };
  std::string found = first("output", a.output, b.output);
  if (a.gradients.size() != b.gradients.size()) return "the number of gradients";
  for (std::size_t i = 0; i < a.gradients.size() && found.empty(); ++i) {
    found = first(text("gradient ", i), a.gradients[i], b.gradients[i]);
  }
  return found;
}

Report verify(const Row& row, std::span<const std::string> targets) {
  Report report{.op = row.op, .cases = row.cases.size(), .worst = {}, .trouble = {}};
  for (const Case& each : row.cases) {
    const Data data = draw(each);
    const Exact terms = exact(each, data);
    const Result reference = run(each, data, {.type = DType::kF64});
    const Worst formula = compare(reference, terms, kReferenceBound);
    if (!formula.good()) report.trouble = text(each.name, ": the f64 reference: ", formula.where);
    Result fused;  // the bits of the targets that have a fused multiply-add
    for (const std::string& name : targets) {
      const TargetScope scope(name);
      const Result result = run(each, data);
      const Worst worst = compare(result, reference, terms, kKernelBound);
      report.worst.take(worst);
      if (!worst.good()) report.trouble = text(each.name, " on ", name, ": ", worst.where);
      if (name != "avx2" && name != "avx512") continue;
      if (fused.output.defined()) {
        const std::string where = difference(fused, result);
        if (!where.empty()) report.trouble = text(each.name, ": other bits on ", name, ": ", where);
      } else {
        fused = result;
      }
    }
  }
  return report;
}

}  // namespace regard::verify
