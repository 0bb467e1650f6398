#include "verify/reference_run.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "base/check.h"
#include "regard/attention/attend.h"
#include "regard/autograd/ops.h"
#include "regard/random.h"
#include "verify/checks.h"

namespace regard::verify {
namespace {

constexpr std::int64_t kVocabulary = 67, kEmbedding = 20, kHidden = 33, kScore = 17;

struct Example {
  std::vector<std::int32_t> source, target;
};

Example example_of(int number) {
  const RandomKey key = RandomKey(77).at(static_cast<std::uint64_t>(number));
  const auto sentence = [&](std::uint64_t side, std::uint64_t length) {
    std::vector<std::int32_t> ids;
    for (std::uint64_t i = 0; i < length; ++i) {
      ids.push_back(static_cast<std::int32_t>(random_below(key.at(side), i, static_cast<std::uint32_t>(kVocabulary))));
    }
    return ids;
  };
  return {sentence(1, 1 + random_below(key, 0, 11)), sentence(2, 1 + random_below(key, 1, 7))};
}

struct Model {
  Parameters parameters;
  const Parameter *embedding, *input, *input_bias, *recurrent, *recurrent_bias, *keys, *key_weight, *key_bias, *queries,
      *theta, *read, *read_bias, *decode, *decode_bias, *hidden, *gate, *norm, *output_bias;

  Model() {
    embedding = add("embedding", {kVocabulary, kEmbedding});
    input = add("encoder.input", {kEmbedding, 3 * kHidden});
    input_bias = add("encoder.input_bias", {3 * kHidden});
    recurrent = add("encoder.recurrent", {kHidden, 3 * kHidden});
    recurrent_bias = add("encoder.recurrent_bias", {3 * kHidden});
    keys = add("attention.keys", {kHidden, kScore});
    key_weight = add("attention.key_weight", {kScore});
    key_bias = add("attention.key_bias", {kScore});
    queries = add("attention.queries", {kScore, kHidden});  // used transposed
    theta = add("attention.theta", {kScore});
    read = add("decoder.input", {kHidden + kEmbedding, 3 * kHidden});
    read_bias = add("decoder.input_bias", {3 * kHidden});
    decode = add("decoder.recurrent", {kHidden, 3 * kHidden});
    decode_bias = add("decoder.recurrent_bias", {3 * kHidden});
    hidden = add("output.hidden", {kHidden, kEmbedding});
    gate = add("output.gate", {kHidden, kEmbedding});
    norm = add("output.norm", {kEmbedding});
    output_bias = add("output.bias", {kVocabulary});
  }

 private:
  const Parameter* add(const char* name, const Shape& shape) {
    const RandomKey key = RandomKey(5).at(parameters.size());
    Tensor value = Tensor::empty(shape);
    for (std::int64_t i = 0; i < value.size(); ++i) {
      value.data<float>()[i] = 0.6f * uniform(key, static_cast<std::uint64_t>(i)) - 0.3f;
    }
    return &parameters.add(name, value);
  }
};

// Examples as a batch, longest source first: rows that have ended stand at the end.
struct Batch {
  std::vector<std::size_t> row_of;  // where the caller's i-th example stands
  std::vector<Example> rows;
  std::vector<std::uint64_t> numbers;
  std::vector<std::int32_t> lengths;
  std::int64_t source_length = 0, target_length = 0;

  Batch(const std::vector<int>& examples, std::int64_t padding) : row_of(examples.size()) {
    std::vector<std::size_t> order(examples.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return example_of(examples[a]).source.size() > example_of(examples[b]).source.size();
    });
    for (std::size_t row = 0; row < order.size(); ++row) {
      row_of[order[row]] = row;
      rows.push_back(example_of(examples[order[row]]));
      numbers.push_back(static_cast<std::uint64_t>(examples[order[row]]));
      lengths.push_back(static_cast<std::int32_t>(rows.back().source.size()));
      source_length = std::max(source_length, static_cast<std::int64_t>(rows.back().source.size()));
      target_length = std::max(target_length, static_cast<std::int64_t>(rows.back().target.size()));
    }
    source_length += padding;
    target_length += padding;
  }
  std::int64_t count() const { return static_cast<std::int64_t>(rows.size()); }
  std::int64_t active(std::int64_t time) const {
    return std::count_if(lengths.begin(), lengths.end(), [&](std::int32_t length) { return length > time; });
  }

  // [rows, length]; what stands behind the end differs from row to row and must not matter.
  Tensor ids(std::vector<std::int32_t> Example::*side, std::int64_t length) const {
    Tensor result = Tensor::empty({count(), length}, DType::kI32);
    for (std::int64_t row = 0; row < count(); ++row) {
      const std::vector<std::int32_t>& sentence = rows[static_cast<std::size_t>(row)].*side;
      for (std::int64_t i = 0; i < length; ++i) {
        result.data<std::int32_t>()[row * length + i] = i < static_cast<std::int64_t>(sentence.size())
                                                            ? sentence[static_cast<std::size_t>(i)]
                                                            : static_cast<std::int32_t>((row * 7 + i) % kVocabulary);
      }
    }
    return result;
  }
};

struct Pass {
  Var loss, embedded;
  Tensor log_probabilities;  // [rows, target length]
  AttendTrace first;
};

// One operation a statement: the order in which a compiler evaluates arguments is its own affair, but the order of the
// operations on the tape decides the order in which gradients are added up.
Pass forward(Tape& tape, const Model& model, const Batch& batch, std::uint64_t step) {
  const std::int64_t count = batch.count(), length = batch.source_length, words = batch.target_length;
  const auto use = [&](const Parameter* parameter) { return tape.use(*parameter); };
  const RandomKey key = RandomKey(123).at(step);
  Pass pass;

  // Encoder: [rows, length, embedding], dropped out by example, then one step a column.
  const Var table = use(model.embedding);
  pass.embedded = embedding(table, batch.ids(&Example::source, length));
  tape.keep(pass.embedded);
  const Var dropped = dropout(pass.embedded, 0.2f, key, batch.numbers);
  const Var columns = transpose(dropped, 0, 1);  // [length, rows, embedding]
  const Var input_weight = use(model.input), input_bias = use(model.input_bias);
  const Var inputs = matmul(columns, input_weight, {.bias = input_bias});
  Tensor zeros = tape.make({count, kHidden});
  std::fill_n(zeros.data<float>(), zeros.size(), 0.0f);
  Var state = tape.constant(zeros);
  const Var recurrent = use(model.recurrent), recurrent_bias = use(model.recurrent_bias);
  std::vector<Var> states;
  for (std::int64_t time = 0; time < length; ++time) {
    const Var column = slice(inputs, 0, time, time + 1);
    const Var input = reshape(column, {count, 3 * kHidden});
    state = gru_cell(input, state, recurrent, recurrent_bias, batch.active(time));
    states.push_back(reshape(state, {count, 1, kHidden}));
  }
  const Var memory = concat(states, 1);  // [rows, length, hidden]
  const Var key_weights = use(model.keys), key_weight = use(model.key_weight), key_bias = use(model.key_bias);
  const Var projected = matmul(memory, key_weights);
  const Var keys = layer_norm(projected, key_weight, key_bias);

  // Decoder: one step a target word.
  const Var words_in = embedding(table, batch.ids(&Example::target, words));
  const Var decode = use(model.decode), decode_bias = use(model.decode_bias), theta = use(model.theta);
  const Var queries = use(model.queries), read_weight = use(model.read), read_bias = use(model.read_bias);
  std::vector<Var> decoded;
  for (std::int64_t word = 0; word < words; ++word) {
    const Var turned = matmul(state, queries, {.transpose_b = true});
    const Var query = reshape(turned, {count, 1, kScore});
    const Attended attended = attend_additive(query, keys, memory, theta, batch.lengths);
    if (word == 0) pass.first = attended.trace;
    const Var word_in = slice(words_in, 1, word, word + 1);
    const Var both = concat({attended.context, word_in}, -1);
    const Var read = reshape(both, {count, kHidden + kEmbedding});
    const Var input = matmul(read, read_weight, {.bias = read_bias});
    state = gru_cell(input, state, decode, decode_bias);
    decoded.push_back(reshape(state, {count, 1, kHidden}));
  }

  // Output: (gelu m + silu m·σ(g) − gelu_tanh g/exp(tanh m))·softmax g + relu m·exp(log_softmax g), normalised, tied to
  // the embedding.
  const Var hidden_weight = use(model.hidden), gate_weight = use(model.gate), norm_weight = use(model.norm);
  const Var output_bias = use(model.output_bias);
  const Var together = concat(decoded, 1);
  const Var all = reshape(together, {count * words, kHidden});
  const Var m = matmul(all, hidden_weight);
  const Var g = matmul(all, gate_weight);
  const Var a = gelu(m);
  const Var b = silu(m);
  const Var c = sigmoid(g);
  const Var d = b * c;
  const Var e = a + d;
  const Var f = gelu_tanh(g);
  const Var h = tanh(m);
  const Var i = exp(h);
  const Var j = f / i;
  const Var k = e - j;
  const Var l = softmax(g);
  const Var n = k * l;
  const Var o = relu(m);
  const Var p = log_softmax(g);
  const Var q = exp(p);
  const Var r = o * q;
  const Var mixed = n + r;
  const Var normal = rms_norm(mixed, norm_weight);
  const Tensor targets = batch.ids(&Example::target, words).reshape({count * words});
  Tensor weights = Tensor::zeros({count * words}), lengths = tape.make({count});
  for (std::int64_t row = 0; row < count; ++row) {
    const Example& example = batch.rows[static_cast<std::size_t>(row)];
    std::fill_n(weights.data<float>() + row * words, example.target.size(), 1.0f);
    lengths.data<float>()[row] = 0.01f * static_cast<float>(example.source.size());
  }
  const CrossEntropy entropy = linear_cross_entropy(
      normal, table, output_bias, targets, {.token_weights = weights, .transposed = true, .label_smoothing = 0.1});
  pass.log_probabilities = entropy.log_probabilities.reshape({count, words});

  // A penalty, so that sum, mean and log take part: of what belongs to the example itself.
  const Var one = number(tape, 1);
  const Var squares = pass.embedded * pass.embedded;
  const Var more = one + squares;
  const Var logs = log(more);
  const Var means = mean(logs, -1);
  const Var sums = sum(means, 1);
  const Var weighed = sums * tape.constant(lengths);
  const Var penalty = sum(weighed);
  pass.loss = entropy.loss + penalty;
  return pass;
}

void add(XXH3_state_t* state, const Tensor& tensor) {
  const Tensor dense = tensor.is_dense() ? tensor : tensor.clone();
  if (dense.bytes() > 0) XXH3_128bits_update(state, dense.raw(), dense.bytes());
}

std::string digits(XXH3_state_t* state) {
  const XXH128_hash_t hash = XXH3_128bits_digest(state);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

struct HashState {
  alignas(64) XXH3_state_t state;
  HashState() {
    XXH3_INITSTATE(&state);
    XXH3_128bits_reset(&state);
  }
};

}  // namespace

std::string operation_hash(const Row& row) {
  HashState hash;
  for (const std::vector<Case>& cases : {row.cases, row.large}) {
    for (const Case& each : cases) {
      const Result result = run(each, draw(each));
      add(&hash.state, result.output);
      for (const Tensor& gradient : result.gradients) {
        if (gradient.defined()) add(&hash.state, gradient);
      }
    }
  }
  return digits(&hash.state);
}

std::string reference_hash() {
  constexpr int kSteps = 3;
  const std::vector<int> batches[kSteps] = {{0, 1, 2, 3, 4, 5}, {6, 7, 8}, {8, 3, 5, 0}};
  Model model;
  Gradients gradients(model.parameters);
  Tape tape(gradients);
  HashState hash;
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    gradients.zero();
    const Pass pass = forward(tape, model, Batch(batches[step], 0), step);
    tape.backward(pass.loss);
    gradients.settle();
    add(&hash.state, pass.loss.value());
    add(&hash.state, pass.log_probabilities);
    for (Parameter& parameter : model.parameters) {
      const Tensor& gradient = gradients.of(parameter);
      add(&hash.state, gradient);
      float* value = parameter.value.data<float>();
      for (std::int64_t i = 0; i < gradient.size(); ++i) value[i] -= 0.05f * gradient.data<float>()[i];
      ++parameter.version;
    }
    tape.reset();
  }
  for (const Parameter& parameter : model.parameters) add(&hash.state, parameter.value);
  return digits(&hash.state);
}

std::vector<ExampleResult> run_examples(const std::vector<int>& examples, std::int64_t padding) {
  for (const int example : examples) {
    check(example >= 0 && example < kExamples, "example ", example, ", expected 0 to ", kExamples - 1);
  }
  Model model;
  Gradients gradients(model.parameters);
  Tape tape(gradients);
  const Batch batch(examples, padding);
  const Pass pass = forward(tape, model, batch, 0);
  tape.backward(pass.loss);
  std::vector<ExampleResult> results;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    const auto row = static_cast<std::int64_t>(batch.row_of[i]);
    const Example& example = batch.rows[batch.row_of[i]];
    const auto source = static_cast<std::int64_t>(example.source.size());
    const auto target = static_cast<std::int64_t>(example.target.size());
    ExampleResult result;
    result.example = examples[i];
    result.log_probabilities = pass.log_probabilities.slice(0, row, row + 1).slice(1, 0, target).clone();
    result.embedding_gradient = tape.gradient(pass.embedded).slice(0, row, row + 1).slice(1, 0, source).clone();
    result.weights = pass.first.weights({.item = row}).slice(1, 0, source).clone();
    results.push_back(result);
  }
  return results;
}

}  // namespace regard::verify
