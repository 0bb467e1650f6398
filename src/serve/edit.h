// What if: a line is translated as the model would, and again with changes to where it looks.
//
//     const Edited made = edit(model, request, limits, context);          // before and after
#pragma once

#include "regard/context.h"
#include "serve/limits.h"
#include "serve/models.h"
#include "serve/request.h"
#include "tasks/translator.h"

namespace regard::serve {

struct Edited {
  Translator::Translation before, after;
};

// Throws a Refusal if the model has no such layer, head or token.
Edited edit(const Model& model, const EditRequest& request, const Limits& limits, const Context& context);

std::string edited_json(const Edited& edited, const Model& model, const EditRequest& request, const Limits& limits);

struct Traced {
  const Translator::Translation& found;
  std::string title = {};  // of its best
};
// A trace of every result, best first, as bytes of a file.
std::string trace_bytes(const Model& model, std::string_view line, std::span<const Traced> results,
                        const Limits& limits, const Context& context);

// Whoever asks for maps of a line gets them only if there are not too many weights; known before anything is computed.
void check_weights(const Translator& translator, std::string_view line, bool everything, const Limits& limits);

}  // namespace regard::serve
