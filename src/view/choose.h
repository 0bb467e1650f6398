// Which map of a trace is shown, and how: a layer, a head, tokens or words, weights as they are or by other measures.
//
//     const Shown map = choose(trace, {.map = "cross", .layer = 2, .words = true});
//     matrix_picture(map)
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "view/pictures.h"
#include "view/trace.h"

namespace regard {

struct MapChoice {
  std::int64_t item = 0;
  std::string map = {};                    // none: what the trace says, else its first
  std::optional<std::int64_t> layer = {};  // none: what the trace says, else the last
  std::optional<std::int64_t> head = {};   // none: what the trace says, else the mean of all
  bool words = false;                      // tokens of a word together
  bool rollout = false, norms = false;     // see view/derive.h
};

const TraceItem& item_of(const Trace& trace, const MapChoice& choice);  // throw if there is none
const TraceMap& map_of(const TraceItem& item, const MapChoice& choice);
Shown choose(const Trace& trace, const MapChoice& choice);
Tensor choose_all(const Trace& trace, const MapChoice& choice);  // [layers, heads, rows, columns]

// What was shown less what the other trace shows for the same choice; rows and columns must be as many.
Shown choose_difference(const Trace& trace, const Trace& other, const MapChoice& choice);

// The row that is called so, or has that number; `token` is "reading" or "3".
std::int64_t row_number(const Shown& map, const std::string& token);

}  // namespace regard
