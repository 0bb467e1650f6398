// Attention that is told where to look (Chen et al. 2016, Garg et al. 2019): to the loss of the words comes
//
//     −guide · Σ over steps i and source tokens j of g_ij · log p_ij
//
// with p the mean over all heads of the last layer, and g what an aligner says (Batch::guide). Rows of g without weight
// say nothing; what comes from no word is at the end of the source.
//
//     MultiHeadResult looked = cross.watch(queries, memory, options);                  // weights one can learn from
//     loss.sum = loss.sum + guide_loss(rows_of(looked.weights), places, batch, options);
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "models/batch.h"
#include "models/sequence_model.h"
#include "regard/autograd/ops.h"

namespace regard {

bool guided(const Batch& batch, const LossOptions& options);
// Throws unless weights that this line makes can be told: softmax, a weighted sum, nothing dropped.
void check_guided(std::string_view line, float attention_dropout);

// Row i of the weights [rows, time] belongs to places[i] of the steps [steps · batch].
Var guide_loss(Var weights, std::span<const std::int32_t> places, const Batch& batch, const LossOptions& options);

}  // namespace regard
