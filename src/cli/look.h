// Where a translation looked, on the terminal, and the options that say whose attention is meant.
#pragma once

#include <fmt/format.h>

#include <cstdint>

#include "cli/app.h"
#include "models/attention_maps.h"
#include "tasks/alignment.h"
#include "view/derive.h"
#include "view/terminal.h"

namespace regard::cli {

// --layer and --head: instead of what the model says shows the alignment best.
struct LookOptions {
  std::int64_t layer = -1, head = -2;  // none said

  void add(App& app) {
    app.add_option("--layer", layer, "whose attention (what the model says, see regard heads)")
        ->check(Range(0, 1000))
        ->option_text("N");
    app.add_option("--head", head, "which head, -1 is the mean of all (what the model says)")
        ->check(Range(-1, 1000))
        ->option_text("N");
  }

  void put_into(AlignmentSettings& alignment) const {
    if (layer >= 0) alignment.layer = layer;
    if (head >= -1) alignment.head = head;
  }
};

inline void print_look(const Translator& translator, const Translator::Looked& looked, const AlignmentChoice& choice,
                       const MapSettings& settings) {
  const Tensor map = map_of(looked.weights, {.layer = choice.layer, .head = choice.head});
  fmt::print("\n{}\n", heat_map(shifted(map, choice.shift),
                                {.rows = labels_of(translator.target(), looked.target),
                                 .columns = labels_of(translator.source(), looked.source)},
                                settings));
}

}  // namespace regard::cli
