// Pieces of words, as SentencePiece makes them (Kudo and Richardson 2018): byte pair encoding (Sennrich et al. 2016) or
// a unigram model (Kudo 2018). Its library only trains (train_pieces.h); its models are read, and texts split and put
// together again, by the code here, which gives the same ids and which no model file can crash.
//
//     auto pieces = read_pieces(bytes_of("m.model"));
//     pieces->ids("They are watching.")
//
// Blanks are part of the pieces (▁They ▁are), so tokens cover them too. A character without a piece is unknown, several
// in a row are one unknown token; with byte fallback they are spelt in bytes, each of which stands for the character.
#pragma once

#include <memory>
#include <string_view>

#include "data/tokenizer.h"

namespace regard {

// The bytes of a .model file of SentencePiece; an Error if they are damaged, or ask for what is not supported.
std::unique_ptr<Tokenizer> read_pieces(std::string_view model);

}  // namespace regard
