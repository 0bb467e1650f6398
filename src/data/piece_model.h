// What is in a .model file of SentencePiece: a message of protocol buffers, of which we need the fields below.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace regard {

enum class PieceType : std::uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};
enum class PieceAlgorithm : std::uint8_t { kUnigram = 1, kPairs = 2 };

struct PieceModel {
  struct Piece {
    std::string text;
    float score = 0;
    PieceType type = PieceType::kNormal;
  };
  std::vector<Piece> pieces;
  PieceAlgorithm algorithm = PieceAlgorithm::kUnigram;
  bool blank_behind = false;  // ▁ stands at the end of words, not before them
  bool byte_fallback = false;
  std::string unknown_surface = " ⁇ ";
  std::string unknown_piece = "<unk>", begin_piece = "<s>", end_piece = "</s>", padding_piece = "<pad>";
  // Normalising.
  std::string charsmap;
  bool dummy_prefix = true;   // a blank before the first word
  bool merge_blanks = true;   // runs of blanks are one, none at the ends
  bool escape_blanks = true;  // a blank is written ▁
};

PieceModel parse_piece_model(std::string_view bytes);  // checked: texts are UTF-8, scores finite, one unknown piece

}  // namespace regard
