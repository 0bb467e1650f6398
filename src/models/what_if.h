// What if: changes to where a model looks while it decodes one source; the model stays as it is.
//
//     WhatIf what_if{.muted = {{LookKind::kCross, 3, 1}}, .hidden = {2}};          // without a head, without a word
//     search(model, batch, {.beam = 5, .what_if = &what_if});
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "regard/attention/mechanism.h"

namespace regard {

// Which attention of a model: at the source, of the encoder at itself, of the decoder at itself.
enum class LookKind { kCross, kEncoder, kDecoder };
std::string_view name_of(LookKind kind);  // "cross", "encoder", "decoder"

struct WhatIf {
  struct Head {
    LookKind kind = LookKind::kCross;
    std::int64_t layer = 0, head = 0;
  };
  struct Row {                           // a look at the source that is told where to look
    std::int64_t step = 0;               // which word is written after it, from 0
    std::int64_t layer = -1, head = -1;  // −1: all
    std::vector<float> weights = {};     // one a token of the source, the end included
  };
  std::vector<Head> muted = {};           // what they read is zeros
  std::vector<std::int64_t> hidden = {};  // tokens of the source at which no attention may look
  std::vector<Row> rows = {};             // of several for the same look, the last counts
  bool empty() const { return muted.empty() && hidden.empty() && rows.empty(); }
};

// One look of a model at one source.
struct LookPlace {
  LookKind kind = LookKind::kCross;
  std::int64_t layer = 0, heads = 1, queries = 0, keys = 0;
  std::int64_t step = -1;  // of the decoder
};

// What it says about that look; none: nothing. `what_if` may be null.
std::optional<Edits> edits_of(const WhatIf* what_if, const LookPlace& place);

// Of several models whose layers at the source are numbered one after another: what it says to the one that has
// `layers` of them from `first` on. Looks at themselves are those of the first model.
WhatIf part_of(const WhatIf& what_if, std::int64_t first, std::int64_t layers);

}  // namespace regard
