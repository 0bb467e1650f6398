// A translation told while it is written: every token with the weights it was written with. Greedy, since a word that
// was told cannot be taken back; the result has the bits of a translation with a beam of 1.
//
//     stream(model, "他们在看。", [](const StreamedToken& token) { … }, context);
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "regard/context.h"
#include "serve/models.h"

namespace regard::serve {

struct StreamedToken {
  std::string piece;           // as one would show it
  std::string text;            // of all tokens so far
  double log_probability = 0;  // of this one
  Tensor weights = {};         // f32 [layers, heads, source + end]; of no layer if it was not asked for
};

struct Streamed {
  std::string text;
  std::vector<std::string> source;  // pieces, and the end
  double log_probability = 0;       // of all tokens and the end
};

// `begin` is told the pieces of the source. Throws a Refusal if the line is longer than the model can take at once.
Streamed stream(const Model& model, std::string_view line, bool weights,
                const std::function<void(const std::vector<std::string>&)>& begin,
                const std::function<void(const StreamedToken&)>& each, const Context& context);

}  // namespace regard::serve
