#include "data/piece_model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <unordered_set>

#include "base/utf8.h"
#include "data/bytes.h"
#include "data/tokenizer.h"

namespace regard {
namespace {

constexpr std::string_view kWhat = "tokenizer (pieces)";
constexpr std::size_t kLongestPiece = 4096;  // bytes

struct Field {
  std::uint64_t number = 0;
  std::uint64_t value = 0;  // of a varint, or of 4 or 8 bytes
  std::string_view bytes;   // of a text or a message
  std::uint64_t wire = 0;
};

// Calls use(field) for every field of a message.
template <class Use>
void each_field(std::string_view message, const Use& use) {
  ByteReader in(message, kWhat);
  while (in.left() > 0) {
    Field field;
    const std::uint64_t key = in.number();
    field.number = key >> 3;
    field.wire = key & 7;
    in.expect(field.number > 0, "has a field without a number");
    const auto fixed = [&](std::size_t count) {
      const std::string_view raw = in.raw(count);
      for (std::size_t i = count; i-- > 0;) field.value = field.value << 8 | static_cast<unsigned char>(raw[i]);
    };
    switch (field.wire) {
      case 0:
        field.value = in.number();
        break;
      case 1:
        fixed(8);
        break;
      case 2:
        field.bytes = in.text();
        break;
      case 5:
        fixed(4);
        break;
      default:
        in.wrong("has a field of an unknown kind");
    }
    use(in, field);
  }
}

std::string_view text_of(const ByteReader& in, const Field& field) {
  in.expect(field.wire == 2, "has a number where a text belongs");
  return field.bytes;
}

std::uint64_t number_of(const ByteReader& in, const Field& field) {
  in.expect(field.wire == 0, "has a text where a number belongs");
  return field.value;
}

PieceModel::Piece piece_of(std::string_view message) {
  PieceModel::Piece piece;
  each_field(message, [&](const ByteReader& in, const Field& field) {
    if (field.number == 1) piece.text = text_of(in, field);
    if (field.number == 2) {
      in.expect(field.wire == 5, "has a score that is no number");
      piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
      in.expect(std::isfinite(piece.score), "has a score that is not finite");
    }
    if (field.number == 3) {
      const std::uint64_t type = number_of(in, field);
      in.expect(type >= 1 && type <= 6, "has a piece of an unknown type");
      piece.type = static_cast<PieceType>(type);
    }
  });
  const ByteReader in({}, kWhat);
  in.expect(!piece.text.empty() && piece.text.size() <= kLongestPiece, "has a piece that is empty or too long");
  in.expect(utf8::valid(piece.text) && piece.text.find('\0') == std::string::npos, "has a piece that is no text");
  return piece;
}

void read_trainer(std::string_view message, PieceModel& model) {
  each_field(message, [&](const ByteReader& in, const Field& field) {
    const auto name = [&](std::string& to) {
      to = text_of(in, field);
      in.expect(to.size() <= kLongestPiece && utf8::valid(to), "has a name that is no text");
    };
    switch (field.number) {
      case 3: {
        const std::uint64_t type = number_of(in, field);
        in.expect(type == 1 || type == 2, "is neither a unigram model nor one of byte pairs");
        model.algorithm = static_cast<PieceAlgorithm>(type);
        break;
      }
      case 24:
        model.blank_behind = number_of(in, field) != 0;
        break;
      case 35:
        model.byte_fallback = number_of(in, field) != 0;
        break;
      case 44:
        name(model.unknown_surface);
        break;
      case 45:
        name(model.unknown_piece);
        break;
      case 46:
        name(model.begin_piece);
        break;
      case 47:
        name(model.end_piece);
        break;
      case 48:
        name(model.padding_piece);
        break;
      default:
        break;
    }
  });
}

void read_normalizer(std::string_view message, PieceModel& model) {
  each_field(message, [&](const ByteReader& in, const Field& field) {
    switch (field.number) {
      case 2:
        model.charsmap = text_of(in, field);
        break;
      case 3:
        model.dummy_prefix = number_of(in, field) != 0;
        break;
      case 4:
        model.merge_blanks = number_of(in, field) != 0;
        break;
      case 5:
        model.escape_blanks = number_of(in, field) != 0;
        break;
      default:
        break;
    }
  });
}

}  // namespace

PieceModel parse_piece_model(std::string_view bytes) {
  PieceModel model;
  const ByteReader whole({}, kWhat);
  each_field(bytes, [&](const ByteReader& in, const Field& field) {
    switch (field.number) {
      case 1:
        in.expect(static_cast<std::int64_t>(model.pieces.size()) < Tokenizer::kMostIds, "has too many pieces");
        model.pieces.push_back(piece_of(text_of(in, field)));
        break;
      case 2:
        read_trainer(text_of(in, field), model);
        break;
      case 3:
        read_normalizer(text_of(in, field), model);
        break;
      case 5: {
        PieceModel other;
        read_normalizer(text_of(in, field), other);
        in.expect(other.charsmap.empty(), "changes its output by rules, which is not supported");
        break;
      }
      default:
        break;
    }
  });
  std::unordered_set<std::string_view> plain, reserved;
  std::int64_t unknown = 0, bytes_found = 0;
  for (const PieceModel::Piece& piece : model.pieces) {
    const bool usual =
        piece.type == PieceType::kNormal || piece.type == PieceType::kUserDefined || piece.type == PieceType::kUnused;
    whole.expect((usual ? plain : reserved).insert(piece.text).second, "has a piece twice");
    unknown += piece.type == PieceType::kUnknown ? 1 : 0;
    bytes_found += piece.type == PieceType::kByte ? 1 : 0;
  }
  whole.expect(unknown == 1, "needs one unknown piece");
  whole.expect(bytes_found == (model.byte_fallback ? 256 : 0), "needs a piece for every byte, or for none");
  return model;
}

}  // namespace regard
