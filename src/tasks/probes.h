// Small experiments that show what is said of attention: why gradients fade in recurrent networks, how one wrong word
// leads to others, why scores are divided by √d, that attention does not know the order of words.
//
//     const Probe found = probe_gradients({});
//     fmt::print("{}", to_text(found));                // numbers
//     to_svg(found)                                    // and a picture
//
// What is random follows from the seed: the same numbers on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "regard/context.h"
#include "tasks/evaluation.h"
#include "tasks/translator.h"
#include "view/line_chart.h"

namespace regard {

struct Probe {
  std::string about;  // what is measured, a line or more
  std::vector<ChartLine> lines;
  LineChart chart;
};
std::string to_text(const Probe& probe);  // a table, a column a line; of many rows every so many
std::string to_svg(const Probe& probe);

// ‖∂(r·y)/∂x_{T−d}‖ for d = 0, 1, …, over that of d = 0: y is what a network gives at the end of a sequence, r a random
// direction. Recurrent networks multiply by a matrix a step, so it fades or explodes exponentially; attention reaches
// every place in one step.
struct GradientProbe {
  std::int64_t length = 60, width = 32;
  std::uint64_t seed = 1;
};
Probe probe_gradients(const GradientProbe& settings);

// Entropy of softmax(scale·q·k) over random keys, as a share of the most, and the size of its gradient, ‖∂p/∂s‖, for
// scales 1, 1/√d and 1/(8√d). Products of d random numbers spread by √d: without the scale softmax saturates, and
// nothing is learned any more.
struct SaturationProbe {
  std::int64_t keys = 64, queries = 64;
  std::int64_t widest = 1024;  // from 4 on
  std::uint64_t seed = 1;
};
Probe probe_saturation(const SaturationProbe& settings);

// How much what a layer makes of each word changes when the words are shuffled, ‖y′ − y‖/‖y‖ word by word: nothing if
// the layer is blind to order. Self-attention without positions, with each way to tell them, and a recurrent layer.
struct OrderProbe {
  std::int64_t words = 16, width = 32, heads = 2;
  std::uint64_t seed = 1;
};
Probe probe_order(const OrderProbe& settings);

// Models write the sentences freely, twice: the second time one word, number `at`, is the second best instead of the
// best. The share of the words behind it that are others than before, by distance.
struct ErrorProbe {
  std::int64_t at = 3;         // from 0
  std::int64_t distance = 12;  // so many words behind it are looked at
  bool wrong = true;           // false: the word is left as it is, and nothing may differ
};
struct ProbedModel {
  std::string name;
  const Translator* translator;
};
Probe probe_errors(std::span<const ProbedModel> models, std::span<const std::string> sources,
                   const ErrorProbe& settings, const Context& context = {});

}  // namespace regard
