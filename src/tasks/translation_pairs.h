// Pairs of lines as ids, in batches: what training, translating and scoring have in common.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "data/tokenizer.h"
#include "decode/search.h"
#include "models/batch.h"
#include "regard/context.h"

namespace regard {

BatchSettings ends_of(const Tokenizer& target);  // throws if it has no begin or no end

std::vector<std::int32_t> source_ids(const Tokenizer& tokenizer, std::string_view text);  // and the end

bool has_room(const Room& room, std::size_t source, std::size_t target);  // for so many tokens
// Whether a model has room for a pair, its ends included; throws if not.
bool has_room(const Room& room, const SequencePair& pair);
void check_room(const Room& room, const SequencePair& pair);

// Cuts pairs into batches of a budget of tokens, those of like length together, and hands each on: number(row) says
// which pair a row is. At most `most` pairs a batch; 0: as many as fit.
void for_each_batch(
    const std::vector<SequencePair>& pairs, std::int64_t tokens, const BatchSettings& ends,
    const std::function<void(const Batch&, const std::function<std::size_t(std::int64_t row)>& number)>& each,
    std::int64_t most = 0);

// What is found for each source, in the order of the pairs; their targets are not looked at.
std::vector<Hypotheses> search_all(const SequenceModel& model, const std::vector<SequencePair>& pairs,
                                   const SearchSettings& settings, std::int64_t tokens, const Context& context,
                                   std::vector<SearchSteps>* steps = nullptr);

}  // namespace regard
