// What can be made of the maps of a trace: other answers to "where did it look", and what is shown of them.
//
//     const Tensor map = chosen_map(item);                                    // [rows, columns]
//     const Tensor words = to_words(map, item.axis("target"), item.axis("source"));
//     for (const TopWeight& each : top(words, 0, 3)) …                         // of row 0 the three greatest
//     rollout(item.map("encoder"), map)                                       // at what was read, not at where it lay
//
// All are pure functions: maps [rows, columns] or [layers, heads, rows, columns] of f32 in, f32 out. A weight that is
// not known (not a number) makes what depends on it not known, if nothing else is said.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "view/trace.h"

namespace regard {

// One layer and head of a map [rows, columns]; layer −1: the last; head −1: the mean of all heads.
Tensor weights_of(const TraceMap& map, std::int64_t layer, std::int64_t head);

// A map whose row i is step i + shift: nothing is known of the last rows.
Tensor shifted(const Tensor& map, std::int64_t shift);

// The choice of the item; without one, of the first map the mean of the heads of the last layer. Shifted as it says.
// Throws if there is no map.
Tensor chosen_map(const TraceItem& item);
TraceChoice choice_of(const TraceItem& item);  // the one in force

// Attention rollout (Abnar and Zuidema 2020): a layer keeps half of what was there and mixes the rest, so
//   R = (½·W_L + ½·I) ⋯ (½·W_1 + ½·I),   W_l the mean of the heads of layer l, rows that sum to 0 taken as I.
// R [n, n] of a map over one axis: where the rows of the last layer come from.
Tensor rollout(const TraceMap& encoder);
// Through the encoder: cross [rows, n] · R. The cross map looks at rows of the encoder; this looks at its words.
Tensor rollout(const TraceMap& encoder, const Tensor& cross);

// A weight counts as much as the value it reads is long (Kobayashi et al. 2020): weight · norm, and every row made to
// sum to one again (a row of zeros stays). [layers, heads, rows, columns]; throws if the map has no norms.
Tensor norm_weighted(const TraceMap& map);

// How spread a row is: −Σ p·ln p, in nats, of p = weights over their sum. Not known if a weight is not known or below
// 0, or if all are 0.
double entropy(std::span<const float> row);
// The mean over the rows whose entropy is known, [layers, heads]; not a number where there is none.
Tensor entropies(const TraceMap& map);

Tensor difference(const Tensor& a, const Tensor& b);  // a − b of one shape

struct TopWeight {
  std::int64_t column = 0;
  float weight = 0;
};
// The greatest weights of a row of a map [rows, columns], at most k, greatest first; of equals the first column first;
// those that are not known are left out.
std::vector<TopWeight> top(const Tensor& map, std::int64_t row, std::int64_t k);

// Tokens of one word become one place, in the order of their first tokens; a token of no word stays by itself. Other
// kinds of axes are given back as they are.
TraceAxis to_words(const TraceAxis& axis);
// The map over these: summed over the columns of a word, averaged over the rows of a word.
Tensor to_words(const Tensor& map, const TraceAxis& rows, const TraceAxis& columns);

}  // namespace regard
