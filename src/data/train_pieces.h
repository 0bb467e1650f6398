// Learns pieces of words from texts, with SentencePiece's trainer (the module regard_pieces.so, opened on use).
//
//     auto pieces = train_pieces(texts, {.size = 8000});
//
// The same texts and settings give the same bytes on any number of cores. Of more than `most_bytes` of text every
// second, third, … line (or group of lines) is learned from, so that memory stays bounded and the whole of the text has
// its say.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/pieces_module.h"
#include "data/tokenizer.h"

namespace regard {

struct PieceSettings {
  std::int64_t size = 8000;  // of the vocabulary, at most: little text has fewer pieces
  bool unigram = false;      // else byte pairs
  bool lower = false;        // lower case
  bool as_written = false;   // no compatibility forms of Unicode, which make “，” to “,”, unless in lower case
  bool byte_fallback = false;  // spell what is unknown in bytes: takes 256 ids
  // Of the characters of the texts; the rarest are unknown. 0: all of an alphabet, 0.9995 if there are so many
  // characters that they would take a quarter of the vocabulary.
  double coverage = 0;
  std::uint64_t most_bytes = std::uint64_t{10} << 20;  // the trainer takes some 30 times as much for Chinese
  std::uint64_t together = 1;  // neighbours that are left out or learned from together: the two texts of a pair
};

std::unique_ptr<Tokenizer> train_pieces(const EachText& texts, const PieceSettings& settings = {});

std::vector<std::string> pieces_module_places();  // where the module is looked for
const RegardPiecesModule* find_pieces_module();   // nullptr: there is none
const RegardPiecesModule& pieces_module();        // an Error if there is none

}  // namespace regard
