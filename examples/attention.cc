// Attention, and where it looked: two queries over five keys, of which four are visible.
#include <regard/nn/attention_layer.h>

#include <array>
#include <cstdio>

int main() {
  regard::Parameters parameters;
  const regard::AttentionLayer attention(regard::Builder(parameters, regard::RandomKey(1)), "additive | lengths",
                                         {.query_token = 8, .key_token = 8, .hidden = 16});

  regard::Tape tape;
  const regard::Var queries = tape.constant(regard::normal({1, 1, 2, 8}, 1, regard::RandomKey(2)));
  const regard::Var values = tape.constant(regard::normal({1, 1, 5, 8}, 1, regard::RandomKey(3)));
  const auto [context, trace] = attention(queries, values, values, {.lengths = std::array{4}});

  std::printf("context %s\n", to_text(context.shape()).c_str());
  const regard::Tensor weights = trace.weights({.item = 0});  // asked for afterwards, at no cost to those who do not
  for (int query = 0; query < 2; ++query) {
    for (int key = 0; key < 5; ++key) std::printf(" %.3f", weights.data<float>()[query * 5 + key]);
    std::printf("\n");
  }
}
