#include "tasks/translation_settings.h"

namespace regard {

const SettingsTable<TranslationSettings>& translation_table() {
  using S = TranslationSettings;
  static const SettingsTable<S> table(
      "training",
      {
          {"tokenizer", &S::tokenizer, "what text is cut into", {"pieces", "unigram", "words", "characters"}},
          {"vocabulary", &S::vocabulary, "different tokens of a language, or of both if joint", {}, 8, 1 << 22},
          {"joint", &S::joint, "one vocabulary for both languages"},
          {"lower", &S::lower, "lower case"},
          {"least_count", &S::least_count, "words and characters seen less often are unknown", {}, 1, 1 << 20},
          {"piece_dropout", &S::piece_dropout, "joints of pieces left out at random while learning", {}, 0, 0.999},
          {"longest_text", &S::longest_text, "tokens; pairs with a longer side are left out", {}, 1, 1 << 16},
          {"batch_tokens", &S::batch_tokens, "tokens of a batch, of source and of target each", {}, 1, 1 << 24},
          {"batch_sentences", &S::batch_sentences, "pairs of a batch instead; 0: by tokens", {}, 0, 1 << 20},
          {"accumulate", &S::accumulate, "batches to an update", {}, 1, 1 << 16},
          {"optimizer", &S::optimizer, "how weights are changed", {"adam", "adadelta", "sgd"}},
          {"rate", &S::rate, "learning rate, the highest; 0: what suits model and optimiser", {}, 0, 100},
          {"schedule",
           &S::schedule,
           "how the rate goes on; not said: what suits the model",
           {"", "constant", "inverse_sqrt", "cosine", "plateau"}},
          {"warmup", &S::warmup, "updates in which the rate rises, where the schedule has it", {}, 0, 1 << 24},
          {"beta2", &S::beta2, "of adam", {}, 0, 0.999999},
          {"decay", &S::decay, "weight decay", {}, 0, 1},
          {"clip", &S::clip, "the largest norm of a gradient; 0: no limit", {}, 0, 1e9},
          {"label_smoothing", &S::label_smoothing, "share of a target that all words get", {}, 0, 0.999},
          {"guide",
           &S::guide,
           "how much attention is told where to look, by an aligner of its own; 0: not",
           {},
           0,
           100},
          {"guide_shift", &S::guide_shift, "told to the step that writes a word (0) or to the one after (1)", {}, 0, 1},
          {"moving_average", &S::moving_average, "decay of an average of the weights; 0: none", {}, 0, 0.999999},
          {"average", &S::average, "take the mean of so many validated weights at the end", {}, 0, 1000},
          {"average_best", &S::average_best, "of the best instead of the last ones"},
          {"stop_after", &S::stop_after, "10e epochs, 5000u updates, 20m minutes, 2h hours"},
          {"valid_every", &S::valid_every, "how often to validate"},
          {"save_every", &S::save_every, "how often to write the checkpoint"},
          {"report_every", &S::report_every, "how often to tell"},
          {"patience", &S::patience, "stop after so many validations without a better one; 0: never", {}, 0, 1 << 20},
          {"best_by", &S::best_by, "which validation is the best", {"bleu", "loss"}},
          {"beam", &S::beam, "of the search in validations", {}, 1, 64},
          {"length_penalty", &S::length_penalty, "of that search", {}, 0, 10},
          {"bleu", &S::bleu, "how BLEU cuts words; not said: by the text", {"", "13a", "zh", "char", "intl", "none"}},
          {"seed", &S::seed, "another seed, another run", {}, 0, 1e18},
      });
  return table;
}

bool may_change(const TranslationSettings& settings, std::string_view key) {
  if (key == "stop_after") return settings.schedule != "cosine";  // whose rates it determines
  return key == "save_every" || key == "report_every" || key == "patience";
}

}  // namespace regard
