// Mechanisms side by side: each is trained on the same data with the same seed and the same budget, and all are tested
// on the same held-out sentences, also on longer ones than they were trained on.
//
//     CompareSettings settings{.mechanisms = compared_mechanisms("none; dot; additive"), .budget = "60s",
//                              .folder = "compare"};
//     const Comparison found = compare_translation(settings, {}, context);
//     fmt::print("{}", to_text(found));
//
// The folder holds a model and a diary of each, what is known of each that is finished, and the comparison itself:
// compare.md, compare.json, lengths.svg, time.svg. The same call goes on where it was stopped; what is finished is not
// trained again.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/presets.h"
#include "regard/context.h"
#include "tasks/evaluation.h"
#include "tasks/translation_settings.h"
#include "train/loop.h"

namespace regard {

// Which of a model's attentions a line is put into. Recurrent models and convs2s have one, the look at the source.
//   cross   the look at the source
//   self    the encoder's and the decoder's look at themselves
//   all     both, but only where it makes sense: what compares places (relative, rotary, random synthesizers, windows,
//           alibi, causal) stays out of the look at the source
// What needs the whole length (local_p) always stays out of the decoder's look at itself.
enum class CompareWhere : std::uint8_t { kCross, kSelf, kAll };
CompareWhere compare_where(std::string_view name);  // cross, self, all
std::string to_text(CompareWhere where);

// "none; dot; dot | local_m:5": lines separated by semicolons. "none" is the model without attention, of recurrent ones
// only; "uniform" is "dot | uniform".
std::vector<std::string> compared_mechanisms(std::string_view list);

struct CompareSettings {
  std::string builtin = "zh-en";
  std::vector<std::string> mechanisms = {};
  std::string budget = "60s";  // of training each: 60s, 5m, 200u
  ModelSettings model = compared_model("gru-attention");
  TranslationSettings training = compared_training();  // its counts follow from the budget
  CompareWhere where = CompareWhere::kAll;
  std::int64_t lines = 20000;  // of the built-in corpus
  std::int64_t tests = 300;    // sentences
  std::string folder = {};

  // A preset made small enough for a budget of a minute, and training to go with it.
  static ModelSettings compared_model(std::string_view preset);
  static TranslationSettings compared_training();
};

struct Compared {
  std::string mechanism;  // as it was named
  std::string where;      // the attentions it was put into: "cross", "encoder decoder"
  double loss = 0, bleu = 0, chrf = 0;
  std::optional<double> bleu_within = {}, bleu_beyond = {};  // of lengths trained on, of longer ones
  std::optional<double> aer = {}, entropy = {};              // of models with attention
  double tokens_per_second = 0;                              // of training, of the target, the median of its reports
  std::int64_t memory = 0;                                   // bytes of tensors in training, the most at a time
  std::int64_t parameters = 0, updates = 0;
  double seconds = 0;                       // of training
  std::optional<double> flops = {};         // of a token of the target, forward, told the right words (base/flops.h)
  std::optional<double> steps = {};         // one after another, to read a pair in training, on average
  std::optional<double> place_error = {};   // of local_p: mean |p_t − right place|, in tokens
  std::optional<double> cheaper_from = {};  // keys, of lines that look at a part (tasks/local_cost.h)
  std::vector<LengthClass> classes = {};
  struct Moment {
    double seconds, updates, bleu, loss;
  };
  std::vector<Moment> course = {};  // validations
};

struct Comparison {
  CompareSettings settings;
  std::vector<Compared> all;  // in the order of the settings; those that are finished
};

struct CompareEvents {
  std::function<void(std::string_view)> say = {};  // a line at a time
  std::function<void(const UpdateReport&)> on_update = {};
};

// Throws at once if a mechanism cannot be built or if the folder holds a comparison with other settings.
Comparison compare_translation(const CompareSettings& settings, const CompareEvents& events, const Context& context);

std::string to_text(const Comparison& found);      // a table for a terminal
std::string to_markdown(const Comparison& found);  // the table with what was compared
std::string to_json(const Comparison& found);
std::string lengths_svg(const Comparison& found);  // BLEU by length
std::string course_svg(const Comparison& found);   // BLEU by time of training

// Of models with attention, over sentences of the built-in corpus whose right alignment is known: AER when each target
// word is linked to the source word with the most weight (tasks/alignment.h, usual_choice), and the entropy of a row of
// weights, as a share of the most there could be. Of local_p how far p_t is from the middle of the tokens that a token
// comes from, the mean of all layers, heads and tokens that come from any.
struct LookedAt {
  double aer = 0, entropy = 0;
  std::optional<double> place_error = {};
};
std::optional<LookedAt> look_at_builtin(const Translator& translator, const std::string& pair, std::int64_t sentences,
                                        std::uint64_t seed, const Context& context);

}  // namespace regard
