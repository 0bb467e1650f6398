// The operations against PyTorch: tests/golden/*.txt, made by tests/golden/make.py.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "base/check.h"
#include "kernels/target.h"
#include "regard/attention/attend.h"
#include "regard/attention/mechanism.h"
#include "regard/autograd/ops.h"
#include "regard/nn/multi_head.h"
#include "regard/nn/position.h"
#include "regard/nn/recurrent.h"
#include "regard/train/average.h"
#include "regard/train/optimizer.h"
#include "regard/train/schedule.h"
#include "support/paths.h"

namespace regard {
namespace {

struct Golden {
  std::string op, where;
  std::map<std::string, std::string> options;
  std::vector<std::string> order;  // of the tensors
  std::map<std::string, Tensor> tensors;

  std::int64_t number(const std::string& key, std::int64_t otherwise) const {
    const auto found = options.find(key);
    return found == options.end() ? otherwise : std::stoll(found->second);
  }
  double real(const std::string& key, double otherwise) const {
    const auto found = options.find(key);
    return found == options.end() ? otherwise : std::stod(found->second);
  }
  std::vector<std::int32_t> list(const std::string& key) const {
    std::vector<std::int32_t> all;
    std::istringstream in(options.at(key));
    for (std::string word; std::getline(in, word, ',');) all.push_back(std::stoi(word));
    return all;
  }
  bool has(const std::string& name) const { return tensors.contains(name); }
};

std::vector<Golden> read(const std::string& name) {
  const std::string path = text(source_path(""), "/tests/golden/", name, ".txt");
  std::ifstream file(path);
  check(file.good(), "cannot read ", path);
  std::vector<Golden> all;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first == "case") {
      Golden& made = all.emplace_back();
      words >> made.op;
      made.where = text(name, ".txt:", number, ' ', line.substr(5));
      for (std::string word; words >> word;)
        made.options[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
      continue;
    }
    Shape shape;
    for (std::string word; words >> word && word != ":";) shape = shape.plus(std::stoll(word));
    Tensor tensor = Tensor::empty(shape, DType::kF64);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      check(static_cast<bool>(words >> tensor.data<double>()[i]), path, ':', number, ": fewer numbers than ", shape,
            " has");
    }
    check(!all.empty(), path, " does not begin with a case");
    all.back().order.push_back(first);
    all.back().tensors[first] = tensor;
  }
  return all;
}

Tensor whole_numbers(const Tensor& x) {
  Tensor result = Tensor::empty(x.shape(), DType::kI32);
  for (std::int64_t i = 0; i < x.size(); ++i)
    result.data<std::int32_t>()[i] = static_cast<std::int32_t>(x.data<double>()[i]);
  return result;
}

Tensor bytes(const Tensor& x) {
  Tensor result = Tensor::empty(x.shape(), DType::kI8);
  for (std::int64_t i = 0; i < x.size(); ++i)
    result.data<std::int8_t>()[i] = static_cast<std::int8_t>(x.data<double>()[i]);
  return result;
}

// The operation of a case on inputs that are on the tape.
Var call(const Golden& golden, const std::map<std::string, Var>& in) {
  const auto x = [&](const char* name) {
    const auto found = in.find(name);
    return found == in.end() ? Var() : found->second;
  };
  const auto dimension = [&] { return static_cast<int>(golden.number("dimension", 0)); };
  const std::string& op = golden.op;
  if (op == "matmul") {
    return matmul(x("a"), x("b"),
                  {.transpose_a = golden.number("transpose_a", 0) != 0,
                   .transpose_b = golden.number("transpose_b", 0) != 0,
                   .bias = x("bias")});
  }
  if (op == "add") return x("a") + x("b");
  if (op == "subtract") return x("a") - x("b");
  if (op == "multiply") return x("a") * x("b");
  if (op == "divide") return x("a") / x("b");
  if (op == "tanh") return tanh(x("x"));
  if (op == "sigmoid") return sigmoid(x("x"));
  if (op == "relu") return relu(x("x"));
  if (op == "gelu") return gelu(x("x"));
  if (op == "gelu_tanh") return gelu_tanh(x("x"));
  if (op == "silu") return silu(x("x"));
  if (op == "exp") return exp(x("x"));
  if (op == "log") return log(x("x"));
  if (op == "softmax") return softmax(x("x"));
  if (op == "log_softmax") return log_softmax(x("x"));
  const auto epsilon = static_cast<float>(golden.real("epsilon", 1e-5));
  if (op == "layer_norm") return layer_norm(x("x"), x("weight"), x("bias"), epsilon);
  if (op == "rms_norm") return rms_norm(x("x"), x("weight"), epsilon);
  if (op == "embedding") return embedding(x("table"), whole_numbers(golden.tensors.at("ids")));
  if (op == "concat") return concat({x("a"), x("b"), x("c")}, dimension());
  if (op == "slice") return slice(x("x"), dimension(), golden.number("begin", 0), golden.number("end", 0));
  if (op == "transpose") {
    return transpose(x("x"), static_cast<int>(golden.number("a", 0)), static_cast<int>(golden.number("b", 0)));
  }
  if (op == "reshape") {
    Shape shape;
    for (const std::int32_t size : golden.list("sizes")) shape = shape.plus(size);
    return reshape(x("x"), shape);
  }
  const bool all = !golden.options.contains("dimension");
  if (op == "sum") return all ? sum(x("x")) : sum(x("x"), dimension());
  if (op == "mean") return all ? mean(x("x")) : mean(x("x"), dimension());
  const auto ids = [&] { return whole_numbers(golden.tensors.at("ids")); };
  if (op == "cumulative_sum") return cumulative_sum(x("x"), dimension());
  if (op == "max") return max(x("x")).values;
  if (op == "top_k") return top_k(x("x"), golden.number("k", 0)).values;
  if (op == "gather") return gather(x("x"), ids());
  if (op == "scatter_add") return scatter_add(x("x"), ids(), golden.number("size", 0));
  if (op == "masked_fill") return masked_fill(x("x"), bytes(golden.tensors.at("mask")), golden.real("value", 0));
  if (op == "glu") return glu(x("x"));
  if (op == "gru_cell") {
    return gru_cell(x("input"), x("state"), x("recurrent"), x("bias"), golden.number("active", -1));
  }
  if (op == "pad_sequences") {
    return pad_sequences(x("x"), golden.list("lengths"), golden.number("longest", 0), golden.number("heads", 1));
  }
  if (op == "unpad_sequences") return unpad_sequences(x("x"), golden.list("lengths"));
  if (op == "conv1d") {
    const std::vector<std::int32_t> lengths =
        golden.options.contains("lengths") ? golden.list("lengths") : std::vector<std::int32_t>();
    return conv1d(x("x"), x("weight"), x("bias"),
                  {.kernel = golden.number("kernel", 0),
                   .padding = golden.number("causal", 0) != 0 ? Padding::kCausal : Padding::kSame,
                   .lengths = lengths});
  }
  if (op == "tanh_cell") {
    return tanh_cell(x("input"), x("state"), x("recurrent"), x("bias"), golden.number("active", -1));
  }
  if (op == "lstm_cell") {
    const RecurrentState after =
        lstm_cell(x("input"), {x("state"), x("memory")}, x("recurrent"), x("bias"), golden.number("active", -1));
    return concat({after.state, after.memory}, 1);
  }
  if (op == "recurrence") {
    const std::string& cell = golden.options.at("cell");
    RecurrentSettings settings;
    settings.cell = cell == "gru" ? Cell::kGru : cell == "lstm" ? Cell::kLstm : Cell::kTanh;
    settings.layers = golden.number("layers", 1);
    settings.both_directions = golden.number("both", 0) != 0;
    std::vector<RecurrentWeights> weights;
    for (int i = 0; golden.has(text("input", i)); ++i) {
      const auto weight = [&](const char* name) { return x(text(name, i).c_str()); };
      weights.push_back({weight("input"), weight("input_bias"), weight("recurrent"), weight("recurrent_bias")});
    }
    const Recurrence result = recurrent_stack(settings, x("x"), weights, golden.list("lengths"),
                                              {.initial = {x("state"), x("memory")}, .ids = {}});
    const auto flat = [](Var part) { return reshape(part, {part.value().size()}); };
    if (!result.memory.defined()) return concat({flat(result.states), flat(result.last)}, 0);
    return concat({flat(result.states), flat(result.last), flat(result.memory)}, 0);
  }
  if (op == "linear_cross_entropy") {
    const Tensor weights =
        golden.has("token_weights") ? golden.tensors.at("token_weights").to(x("x").dtype()) : Tensor();
    CrossEntropyOptions options{.token_weights = weights,
                                .transposed = golden.number("transposed", 0) != 0,
                                .label_smoothing = static_cast<double>(golden.number("smoothing", 0)) / 100};
    if (golden.number("ignores", 0) != 0) options.ignored = -100;
    return linear_cross_entropy(x("x"), x("weight"), x("bias"), whole_numbers(golden.tensors.at("targets")), options)
        .loss;
  }
  if (op == "rotary") return rotary(x("x"), {.first = golden.number("first", 0), .base = golden.real("base", 0)});
  if (op == "sinusoidal") {
    Parameters none;
    const Builder builder(none, RandomKey(1));
    return Position(builder, {.width = x("x")[-1], .longest = golden.number("longest", 0)})(x("x"));
  }
  if (op == "attend_additive") {
    return attend_additive(x("q"), x("k"), x("v"), x("theta"), golden.list("lengths")).context;
  }
  if (op == "attend") {
    AttendOptions options{.query_tokens = x("query_tokens"), .key_tokens = x("key_tokens")};
    std::vector<std::int32_t> lengths;
    if (golden.options.contains("lengths")) options.lengths = lengths = golden.list("lengths");
    if (golden.has("mask")) options.mask = bytes(golden.tensors.at("mask"));
    const std::string& line = golden.options.at("line");
    std::vector<Var> learned;
    for (int i = 0; golden.has(text("learned", i)); ++i) learned.push_back(x(text("learned", i).c_str()));
    options.learned = learned;
    options.heads = golden.number("heads", 1);
    options.hidden = golden.number("hidden", 0);
    Var q = x("q");
    if (!q.defined() && golden.has("q")) q = x("v").tape().constant(golden.tensors.at("q").to(x("v").dtype()));
    return attend(Mechanism(line), q, x("k"), x("v"), options).context;
  }
  if (op == "multi_head") {
    static std::deque<Parameters> kept;  // a tape refers to parameters until its step ends
    Parameters& parameters = kept.emplace_back();
    const MultiHead attention(
        Builder(parameters, RandomKey(1), x("q").dtype()),
        {.heads = golden.number("heads", 0), .query = x("q")[2], .key = x("k")[2], .value = x("v")[2]});
    for (Parameter& each : parameters) each.value.copy_from(golden.tensors.at(each.name).to(x("q").dtype()));
    const std::vector<std::int32_t> lengths =
        golden.options.contains("lengths") ? golden.list("lengths") : std::vector<std::int32_t>();
    return attention(x("q"), x("k"), x("v"), {.lengths = lengths}).output;
  }
  fail(ErrorKind::kInput, "no operation '", op, "'");
}

void expect_close(const Tensor& got, const Tensor& expected, double bound, const std::string& where) {
  ASSERT_TRUE(got.defined()) << where;
  ASSERT_EQ(got.shape(), expected.shape()) << where;
  const Tensor wide = got.to(DType::kF64);
  for (std::int64_t i = 0; i < wide.size(); ++i) {
    const double want = expected.data<double>()[i];
    ASSERT_LE(std::abs(wide.data<double>()[i] - want), bound + bound * std::abs(want))
        << where << '[' << i << "]: got " << wide.data<double>()[i] << ", PyTorch " << want;
  }
}

void check_case(const Golden& golden, DType type, const std::string& where) {
  Tape tape;
  std::map<std::string, Var> inputs;
  for (const std::string& name : golden.order) {
    const bool result = name[0] == '=' || name[0] == '~';
    if (!result && golden.has('~' + name)) inputs[name] = tape.variable(golden.tensors.at(name).to(type));
  }
  const Var y = call(golden, inputs);
  expect_close(y.value(), golden.tensors.at("=y"), 1e-5, where + ": output");
  tape.backward(y, golden.tensors.at("~y").to(type));
  for (const auto& [name, input] : inputs) {
    expect_close(tape.gradient(input), golden.tensors.at('~' + name), 1e-4, where + ": gradient of " + name);
  }
}

struct FileOfCases {
  const char* name;
  std::size_t cases;  // at least
};
constexpr FileOfCases kFiles[] = {
    {"matmul", 27},    {"arithmetic", 24},          {"unary", 8},           {"rows", 18},     {"moving", 23},
    {"gru_cell", 4},   {"linear_cross_entropy", 8}, {"attend_additive", 3}, {"choices", 19},  {"cells", 6},
    {"sequences", 15}, {"convolutions", 5},         {"attend", 28},         {"positions", 6}, {"multi_head", 2},
    {"padding", 6}};

class GoldenNumbers : public testing::TestWithParam<FileOfCases> {};
INSTANTIATE_TEST_SUITE_P(All, GoldenNumbers, testing::ValuesIn(kFiles),
                         [](const auto& each) { return each.param.name; });

TEST_P(GoldenNumbers, AgreeOnEveryTarget) {
  const std::vector<Golden> all = read(GetParam().name);
  ASSERT_GE(all.size(), GetParam().cases);
  for (const Golden& golden : all) {
    check_case(golden, DType::kF64, golden.where + " in f64");
    for (const std::string& name : targets()) {
      const TargetScope scope(name);
      check_case(golden, DType::kF32, golden.where + " on " + name);
    }
  }
}

TEST(Golden, OptimizersAgree) {
  const std::vector<Golden> all = read("optimizers");
  ASSERT_GE(all.size(), 7u);
  for (const Golden& golden : all) {
    Parameters parameters;
    const Parameter& weight = parameters.add("w", golden.tensors.at("w0").to(DType::kF32));
    Gradients gradients(parameters);
    const Groups groups = {{"", {.decay = golden.real("decay", 0)}}};
    std::unique_ptr<Optimizer> optimizer;
    if (golden.op == "sgd") {
      optimizer =
          std::make_unique<Sgd>(parameters, SgdSettings{.momentum = golden.real("momentum", 0), .groups = groups});
    } else if (golden.op == "adadelta") {
      optimizer = std::make_unique<Adadelta>(
          parameters, AdadeltaSettings{
                          .decay = golden.real("rho", 0.9), .epsilon = golden.real("epsilon", 1e-6), .groups = groups});
    } else {
      optimizer = std::make_unique<Adam>(parameters, AdamSettings{.beta1 = golden.real("beta1", 0.9),
                                                                  .beta2 = golden.real("beta2", 0.999),
                                                                  .epsilon = golden.real("epsilon", 1e-8),
                                                                  .groups = groups});
    }
    const Tensor steps = golden.tensors.at("g").to(DType::kF32);
    for (std::int64_t step = 0; step < steps[0]; ++step) {
      gradients.settle();
      gradients.of(weight).copy_from(steps.slice(0, step, step + 1).reshape(weight.value.shape()));
      optimizer->step(gradients, golden.real("rate", 0));
    }
    expect_close(weight.value, golden.tensors.at("=w"), 1e-5, golden.where);
  }
}

// The rates of a schedule, one a step.
std::vector<double> rates_of(const Golden& golden, std::int64_t steps) {
  const double rate = golden.real("rate", 0), lowest = golden.real("lowest", 0);
  std::vector<double> rates;
  if (golden.op == "plateau") {
    Plateau plateau({.rate = rate,
                     .factor = golden.real("factor", 0),
                     .patience = golden.number("patience", 0),
                     .threshold = golden.real("threshold", 1e-4),
                     .rest = golden.number("rest", 0),
                     .lowest = lowest});
    rates.push_back(plateau.rate());
    for (std::int64_t step = 1; step < steps; ++step) {
      plateau.report(golden.tensors.at("loss").data<double>()[step - 1]);
      rates.push_back(plateau.rate());
    }
    return rates;
  }
  Schedule schedule;
  if (golden.op == "constant") schedule = constant_rate(rate);
  if (golden.op == "inverse_square_root") {
    schedule = inverse_square_root({.rate = rate, .warm_up = golden.number("warm_up", 0)});
  }
  if (golden.op == "cosine") {
    schedule = cosine(
        {.rate = rate, .lowest = lowest, .steps = golden.number("steps", 0), .warm_up = golden.number("warm_up", 0)});
  }
  check(schedule != nullptr, "no schedule '", golden.op, "'");
  for (std::int64_t step = 0; step < steps; ++step) rates.push_back(schedule(step));
  return rates;
}

TEST(Golden, SchedulesAgree) {
  std::map<std::string, int> seen;
  for (const Golden& golden : read("schedules")) {
    ++seen[golden.op];
    if (golden.op == "average") continue;
    const Tensor& expected = golden.tensors.at("=rate");
    const std::vector<double> rates = rates_of(golden, expected.size());
    for (std::size_t step = 0; step < rates.size(); ++step) {
      EXPECT_NEAR(rates[step], expected.data<double>()[step], 1e-9) << golden.where << ", step " << step;
    }
  }
  EXPECT_EQ(seen, (std::map<std::string, int>{
                      {"average", 1}, {"constant", 1}, {"cosine", 2}, {"inverse_square_root", 2}, {"plateau", 3}}));
}

TEST(Golden, AveragesAgree) {
  const Golden golden = read("schedules").back();
  ASSERT_EQ(golden.op, "average");
  for (const DType type : {DType::kF32, DType::kF64}) {
    const Tensor weights = golden.tensors.at("w").to(type);
    Parameters parameters;
    const Parameter& weight = parameters.add("w", Tensor::zeros({weights[1]}, type));
    Average average(parameters, golden.real("decay", 0));
    for (std::int64_t step = 0; step < weights[0]; ++step) {
      weight.value.copy_from(weights.slice(0, step, step + 1).reshape(weight.value.shape()));
      average.update();
    }
    expect_close(average.of(weight), golden.tensors.at("=average"), 1e-6, golden.where);
  }
}

TEST(Golden, NumbersExistForEveryOperationThatPyTorchHas) {
  std::map<std::string, int> seen;
  for (const FileOfCases& file : kFiles) {
    for (const Golden& golden : read(file.name)) ++seen[golden.op];
  }
#define REGARD_SEEN(name) \
  EXPECT_TRUE(seen.contains(#name) || std::string(#name) == "dropout") << #name << " has no golden numbers";
  REGARD_OPS(REGARD_SEEN)
#undef REGARD_SEEN
}

}  // namespace
}  // namespace regard
