// Trains a small model: of six cards, each with a number and one of them marked, say the number of the marked one. The
// only way to solve it is to look at the right card, and the weights show that the model does.
#include <regard/context.h>
#include <regard/nn/attention_layer.h>
#include <regard/nn/embedding.h>
#include <regard/nn/linear.h>
#include <regard/train/schedule.h>
#include <regard/train/trainer.h>

#include <algorithm>
#include <cstdio>
#include <vector>

using namespace regard;

constexpr std::int64_t kBatch = 32, kCards = 6, kNumbers = 10, kWidth = 16, kSteps = 300;

struct Examples {
  Tensor cards = Tensor::zeros({kBatch, kCards}, DType::kI32);  // number, plus kNumbers if the card is marked
  Tensor answers = Tensor::zeros({kBatch}, DType::kI32);
  std::vector<std::int32_t> marked = std::vector<std::int32_t>(kBatch);

  explicit Examples(RandomKey key) {
    for (std::int64_t i = 0; i < kBatch; ++i) {
      const RandomKey one = key.at(static_cast<std::uint64_t>(i));
      std::int32_t* row = cards.data<std::int32_t>() + i * kCards;
      for (std::uint64_t c = 0; c < kCards; ++c) row[c] = static_cast<std::int32_t>(random_below(one, c, kNumbers));
      const auto at = static_cast<std::int32_t>(random_below(one, kCards, kCards));
      answers.data<std::int32_t>()[i] = row[at];
      row[at] += kNumbers;
      marked[static_cast<std::size_t>(i)] = at;
    }
  }
};

struct Model {
  Embedding cards, question;
  AttentionLayer attention;
  Linear answer;

  explicit Model(const Builder& builder)
      : cards(builder.under("cards"), 2 * kNumbers, kWidth),
        question(builder.under("question"), 1, kWidth),  // what to look for is learned too
        attention(builder.under("attention"), "additive",
                  {.query_token = kWidth, .key_token = kWidth, .hidden = kWidth}),
        answer(builder.under("answer"), kWidth, kNumbers) {}

  Attention look(Tape& tape, const Examples& examples) const {
    const Var shown = cards(tape, examples.cards);
    const Var asked = question(tape, Tensor::zeros({kBatch, 1}, DType::kI32));
    const auto one_head = [](Var x) { return reshape(x, {x[0], 1, x[1], x[2]}); };
    return attention(one_head(asked), one_head(shown), one_head(shown));
  }
  Var loss(Tape& tape, const Examples& examples) const {
    const Var read = reshape(look(tape, examples).context, {kBatch, kWidth});
    return linear_cross_entropy(read, tape.use(answer.weight()), tape.use(*answer.bias()), examples.answers).loss *
           number(tape, 1.0 / kBatch);
  }
};

int main() {
  Parameters parameters;
  const Model model(Builder(parameters, RandomKey(1)));
  Adam adam(parameters);
  Trainer trainer(parameters, adam, {.clip = 1});
  const Schedule rate = cosine({.rate = 0.02, .steps = kSteps, .warm_up = 20});
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const Examples examples(RandomKey(2).at(static_cast<std::uint64_t>(step)));
    const StepResult result = trainer.step(rate(step), [&](Tape& tape) { return model.loss(tape, examples); });
    if ((step + 1) % 100 == 0) std::printf("step %3d  loss %.3f\n", static_cast<int>(step + 1), result.loss);
  }

  const Examples unseen(RandomKey(3));
  Tape tape;
  const Attention attended = model.look(tape, unseen);
  int right = 0;
  for (std::int64_t i = 0; i < kBatch; ++i) {
    const Tensor weights = attended.trace.weights({.item = i});  // [1, cards]
    const float* row = weights.data<float>();
    right += std::max_element(row, row + kCards) - row == unseen.marked[static_cast<std::size_t>(i)] ? 1 : 0;
  }
  std::printf("looked at the marked card in %d of %d unseen examples\n", right, static_cast<int>(kBatch));
}
