#include "data/pieces.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cstring>
#include <queue>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "data/bytes.h"
#include "data/piece_model.h"

namespace regard {
namespace {

constexpr std::string_view kBlank = "▁";
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr float kUnknownPenalty = 10.0f;

// How long the character is that starts with this byte, if it is well formed.
std::size_t character_length(char first) {
  constexpr std::array<std::uint8_t, 16> kLengths = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
  return kLengths[static_cast<unsigned char>(first) >> 4];
}

// Texts by their beginnings. A node's children are found in one table for all nodes.
class Trie {
 public:
  void add(std::string_view text, std::int32_t value) {
    std::uint32_t node = 0;
    for (const char letter : text) {
      const auto [place, added] = children_.try_emplace(key(node, letter), static_cast<std::uint32_t>(values_.size()));
      node = place->second;
      if (added) values_.push_back(-1);
    }
    values_[node] = value;
  }
  bool empty() const { return values_.size() == 1; }

  // Calls use(length, value) for every text that stands at the start of `text`, shorter ones first.
  template <class Use>
  void prefixes(std::string_view text, const Use& use) const {
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto found = children_.find(key(node, text[i]));
      if (found == children_.end()) return;
      node = found->second;
      if (values_[node] >= 0) use(i + 1, values_[node]);
    }
  }
  std::size_t longest(std::string_view text) const {  // 0: none
    std::size_t most = 0;
    prefixes(text, [&](std::size_t length, std::int32_t) { most = length; });
    return most;
  }

 private:
  static std::uint64_t key(std::uint32_t node, char letter) {
    return std::uint64_t{node} << 8 | static_cast<unsigned char>(letter);
  }
  struct Mix {
    std::size_t operator()(std::uint64_t value) const { return (value * 0x9e3779b97f4a7c15u) >> 20; }
  };
  std::unordered_map<std::uint64_t, std::uint32_t, Mix> children_;
  std::vector<std::int32_t> values_ = {-1};
};

// Rules that replace characters, as the library stores them: the length of a trie, the trie, the replacements. The trie
// is a double array (Aoe 1989) of 32-bit units: an offset to the children, the label, and whether a value follows.
class Rules {
 public:
  explicit Rules(std::string_view bytes) {
    if (bytes.empty()) return;
    const ByteReader in({}, "tokenizer (pieces)");
    in.expect(bytes.size() > 4, "has rules that end too early");
    const std::uint32_t size = unit(bytes, 0);
    in.expect(size % 4 == 0 && size >= 4 && size < bytes.size() - 4, "has rules of a wrong size");
    units_.resize(size / 4);
    for (std::size_t i = 0; i < units_.size(); ++i) units_[i] = unit(bytes, 4 + 4 * i);
    texts_ = bytes.substr(4 + size);
    in.expect(texts_.back() == '\0' && utf8::valid(texts_), "has replacements that are no text");
    for (std::size_t at = 0; at < texts_.size();) {
      const std::size_t end = texts_.find('\0', at);
      in.expect(end - at <= kLongest, "has a replacement that is too long");
      at = end + 1;
    }
  }

  // The longest rule that fits the start of the text: how many bytes it replaces (0: none) and by what.
  std::pair<std::size_t, std::string_view> find(std::string_view text) const {
    std::size_t length = 0, value = 0;
    if (!units_.empty()) {
      std::size_t node = offset(units_[0]);
      for (std::size_t i = 0; i < text.size(); ++i) {
        const auto label = static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]));
        node ^= label;
        if (node >= units_.size() || (units_[node] & 0x800000FFu) != label) break;
        const std::uint32_t here = units_[node];
        node ^= offset(here);
        if ((here >> 8 & 1) == 0) continue;
        if (node >= units_.size()) break;
        length = i + 1;
        value = units_[node] & 0x7FFFFFFFu;
      }
    }
    if (length == 0 || value >= texts_.size()) return {0, {}};
    return {length, std::string_view(texts_.c_str() + value)};
  }

 private:
  static constexpr std::size_t kLongest = 1024;  // bytes of a replacement

  static std::uint32_t unit(std::string_view bytes, std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    return value;
  }
  static std::size_t offset(std::uint32_t value) { return std::size_t{value >> 10} << ((value & (1u << 9)) >> 6); }

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

struct Normalized {
  std::string text;
  std::vector<std::uint32_t> origin;  // of every byte, and of the end: where it comes from
};

class Pieces final : public Tokenizer {
 public:
  explicit Pieces(std::string_view bytes) : bytes_(bytes), model_(parse_piece_model(bytes)), rules_(model_.charsmap) {
    float most = FLT_MIN;  // as in the library, where it is no mistake only because scores are below 0
    least_ = FLT_MAX;
    byte_ids_.fill(-1);
    for (std::size_t i = 0; i < model_.pieces.size(); ++i) {
      const PieceModel::Piece& piece = model_.pieces[i];
      const auto id = static_cast<std::int32_t>(i);
      switch (piece.type) {
        case PieceType::kNormal:
          least_ = std::min(least_, piece.score);
          most = std::max(most, piece.score);
          add(piece.text, id);
          break;
        case PieceType::kUserDefined:
          user_.add(piece.text, id);
          add(piece.text, id);
          break;
        case PieceType::kUnused:
          add(piece.text, id);
          break;
        case PieceType::kUnknown:
          special_.unknown = id;
          reserved_.emplace(piece.text, id);
          break;
        case PieceType::kControl:
          reserved_.emplace(piece.text, id);
          break;
        case PieceType::kByte:
          byte_ids_[byte_of(piece.text)] = id;
          reserved_.emplace(piece.text, id);
          break;
      }
    }
    most_ = most;
    if (model_.byte_fallback) {
      const ByteReader in({}, "tokenizer (pieces)");
      in.expect(std::find(byte_ids_.begin(), byte_ids_.end(), -1) == byte_ids_.end(), "lacks pieces of bytes");
    }
    special_.begin = control(model_.begin_piece);
    special_.end = control(model_.end_piece);
    special_.padding = control(model_.padding_piece);
  }

  std::vector<Token> encode(std::string_view text) const override {
    check_text(text);
    const Normalized normalized = normalize(text);
    std::vector<Span> spans;
    cut_text(normalized.text, spans, nullptr);
    std::vector<Token> tokens;
    tokens.reserve(spans.size());
    std::size_t at = 0;
    bool unknown_before = false;
    for (const Span& span : spans) {
      const std::uint32_t begin = normalized.origin[at];
      if (type(span.id) == PieceType::kControl) {
        tokens.push_back({span.id, begin, begin});
        unknown_before = false;
        at += span.length;
        continue;
      }
      const std::uint32_t end = normalized.origin[at + span.length];
      const bool unknown = span.id == special_.unknown;
      if (unknown && model_.byte_fallback) {
        for (std::size_t i = 0; i < span.length; ++i) {
          tokens.push_back({byte_ids_[static_cast<unsigned char>(normalized.text[at + i])], begin, end});
        }
      } else if (unknown && unknown_before) {
        tokens.back().end = end;
      } else {
        tokens.push_back({span.id, begin, end});
      }
      unknown_before = unknown;
      at += span.length;
    }
    return tokens;
  }

  // A word (what stands between blanks) after the other: no piece reaches into two of them. What is no piece of a text
  // stays as it is.
  std::vector<std::int32_t> cut_again(std::span<const std::int32_t> ids, double dropout, RandomKey key) const override {
    std::vector<std::int32_t> found;
    std::vector<Span> spans;
    std::string word;
    std::size_t begin = 0;  // of the word, in `ids`
    Skips skips(dropout, key);
    const auto cut = [&](std::size_t end) {
      spans.clear();
      cut_text(word, spans, &skips);
      const bool known = std::ranges::none_of(spans, [&](const Span& span) { return span.id == special_.unknown; });
      if (known) {
        for (const Span& span : spans) found.push_back(span.id);
      } else {  // a character that is known within larger pieces only
        found.insert(found.end(), ids.begin() + static_cast<std::ptrdiff_t>(begin),
                     ids.begin() + static_cast<std::ptrdiff_t>(end));
      }
      word.clear();
      begin = end;
    };
    for (std::size_t i = 0; i < ids.size(); ++i) {
      check_id(ids[i]);
      const std::string& text = model_.pieces[static_cast<std::size_t>(ids[i])].text;
      const bool piece = type(ids[i]) == PieceType::kNormal;
      if (!piece || text.starts_with(kBlank)) cut(i);
      if (piece) {
        word += text;
      } else {
        found.push_back(ids[i]);
        begin = i + 1;
      }
    }
    cut(ids.size());
    return found;
  }

  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string out, bytes;
    bool start = true, blank_seen = false;  // is a blank at the start still to be taken away
    const auto write_bytes = [&] {
      for (std::size_t at = 0; at < bytes.size();) {
        const utf8::Letter letter = utf8::read(bytes, at);
        out += letter.valid ? std::string_view(bytes).substr(at, letter.length) : kReplacement;
        at += letter.length;
      }
      bytes.clear();
    };
    for (const std::int32_t id : ids) {
      check_id(id);
      if (type(id) == PieceType::kByte) {
        bytes +=
            static_cast<char>(static_cast<unsigned char>(byte_of(model_.pieces[static_cast<std::size_t>(id)].text)));
        continue;
      }
      write_bytes();
      if (blank_seen || !out.empty()) start = false;
      blank_seen = false;
      if (type(id) == PieceType::kControl) continue;
      if (type(id) == PieceType::kUnknown) {
        out += model_.unknown_surface;
        continue;
      }
      std::string_view text = model_.pieces[static_cast<std::size_t>(id)].text;
      if (start && (model_.dummy_prefix || model_.merge_blanks) && text.starts_with(kBlank)) {
        text.remove_prefix(kBlank.size());
        blank_seen = !model_.merge_blanks;
      }
      for (std::size_t found; (found = text.find(kBlank)) != std::string_view::npos;) {
        out += text.substr(0, found);
        out += ' ';
        text.remove_prefix(found + kBlank.size());
      }
      out += text;
    }
    write_bytes();
    return out;
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(model_.pieces.size()); }
  std::string piece(std::int32_t id) const override {
    check_id(id);
    return model_.pieces[static_cast<std::size_t>(id)].text;
  }
  std::string_view kind() const override { return "pieces"; }
  SpecialIds special() const override { return special_; }

 protected:
  std::string payload() const override { return bytes_; }

 private:
  struct Span {
    std::int32_t id;
    std::size_t length;  // bytes of the normalised text
  };

  // Which joints are left out: the n-th that is asked about is a function of the key and n.
  class Skips {
   public:
    Skips(double share, RandomKey key) : share_(share), key_(key) {}
    bool next() { return static_cast<double>(uniform(key_, asked_++)) < share_; }

   private:
    double share_;
    RandomKey key_;
    std::uint64_t asked_ = 0;
  };

  void cut_text(std::string_view text, std::vector<Span>& spans, Skips* skips) const {
    if (model_.algorithm == PieceAlgorithm::kPairs) {
      merge_pairs(text, spans, skips);
    } else {
      best_path(text, spans, skips);
    }
  }

  void add(const std::string& text, std::int32_t id) {
    if (model_.algorithm == PieceAlgorithm::kPairs) {
      ids_.emplace(text, id);
    } else {
      trie_.add(text, id);
    }
  }

  static std::size_t byte_of(std::string_view text) {  // <0x1F>
    const ByteReader in({}, "tokenizer (pieces)");
    in.expect(text.size() == 6 && text.starts_with("<0x") && text.ends_with('>'), "has a byte that is none");
    std::size_t value = 0;
    for (const char digit : text.substr(3, 2)) {
      const bool decimal = digit >= '0' && digit <= '9', letter = digit >= 'A' && digit <= 'F';
      in.expect(decimal || letter, "has a byte that is none");
      value = value * 16 + static_cast<std::size_t>(decimal ? digit - '0' : digit - 'A' + 10);
    }
    return value;
  }

  std::int32_t control(const std::string& text) const {
    const auto found = reserved_.find(text);
    return found != reserved_.end() && type(found->second) == PieceType::kControl ? found->second : -1;
  }

  PieceType type(std::int32_t id) const { return model_.pieces[static_cast<std::size_t>(id)].type; }
  float score(std::int32_t id) const { return model_.pieces[static_cast<std::size_t>(id)].score; }

  // What the start of the text becomes, and how many of its bytes that takes.
  std::pair<std::string_view, std::size_t> normalize_start(std::string_view text) const {
    if (!user_.empty()) {
      if (const std::size_t length = user_.longest(text); length > 0) return {text.substr(0, length), length};
    }
    if (const auto [length, replacement] = rules_.find(text); length > 0) return {replacement, length};
    const utf8::Letter letter = utf8::read(text, 0);
    if (!letter.valid) return {kReplacement, 1};
    return {text.substr(0, letter.length), letter.length};
  }

  Normalized normalize(std::string_view text) const {
    Normalized out;
    std::size_t at = 0;
    if (model_.merge_blanks) {
      while (at < text.size()) {
        const auto [start, length] = normalize_start(text.substr(at));
        if (start != " ") break;
        at += length;
      }
    }
    if (at == text.size()) return out;
    // Rules make text longer (a sign of three bytes may stand for a whole phrase); rules of a stranger not without end.
    const std::size_t most = 64 * text.size() + 4096;
    out.text.reserve(text.size() + text.size() / 2);
    out.origin.reserve(text.size() + text.size() / 2);
    const auto put = [&](std::string_view some) {
      if (out.text.size() + some.size() > most) {
        fail(ErrorKind::kLimit, "tokenizer (pieces): its rules make ", text.size(), " bytes of text more than ", most);
      }
      out.text += some;
      out.origin.insert(out.origin.end(), some.size(), static_cast<std::uint32_t>(at));
    };
    const std::string_view blank = model_.escape_blanks ? kBlank : std::string_view(" ");
    if (!model_.blank_behind && model_.dummy_prefix) put(blank);
    bool blank_before = model_.merge_blanks;
    while (at < text.size()) {
      const auto [start, length] = normalize_start(text.substr(at));
      std::string_view some = start;
      while (blank_before && some.starts_with(' ')) some.remove_prefix(1);
      if (!some.empty()) {
        for (const char& letter : some) put(letter == ' ' ? blank : std::string_view(&letter, 1));
        blank_before = some.ends_with(' ');
      }
      at += length;
      if (!model_.merge_blanks) blank_before = false;
    }
    if (model_.merge_blanks) {
      while (out.text.ends_with(blank)) {
        const std::size_t length = out.text.size() - blank.size();
        at = out.origin[length];
        out.text.resize(length);
        out.origin.resize(length);
      }
    }
    if (model_.blank_behind && model_.dummy_prefix) put(blank);
    out.origin.push_back(static_cast<std::uint32_t>(at));
    return out;
  }

  // The best path through all ways to cut the text. Its sums are kept in float and compared in double: the library's
  // do the same, and where two paths are nearly equal that decides. `skips`: pieces of several characters that are not
  // there this time.
  void best_path(std::string_view text, std::vector<Span>& spans, Skips* skips) const {
    struct Node {
      std::int32_t id = -1;
      float score = 0;
      std::int64_t start = -1;
    };
    std::vector<Node> ends(text.size() + 1);
    const float unknown = least_ - kUnknownPenalty;
    for (std::size_t at = 0; at < text.size();) {
      const float here = ends[at].score;
      const std::size_t length = std::min(character_length(text[at]), text.size() - at);
      bool single = false;
      const auto offer = [&](std::size_t end, std::int32_t id, double candidate) {
        Node& node = ends[end];
        if (node.start != -1 && !(candidate > static_cast<double>(node.score))) return;
        node = {id, static_cast<float>(candidate), static_cast<std::int64_t>(at)};
      };
      trie_.prefixes(text.substr(at), [&](std::size_t count, std::int32_t id) {
        if (type(id) == PieceType::kUnused) return;
        if (skips != nullptr && count > length && skips->next()) return;
        // What the user has defined is chosen always.
        const double own = type(id) == PieceType::kUserDefined
                               ? static_cast<double>(static_cast<float>(count) * most_) - 0.1
                               : static_cast<double>(score(id));
        offer(at + count, id, own + static_cast<double>(here));
        if (count == length) single = true;
      });
      if (!single) offer(at + length, special_.unknown, static_cast<double>(unknown + here));
      at += length;
    }
    for (std::size_t end = text.size(); end > 0;) {
      const auto start = static_cast<std::size_t>(ends[end].start);
      spans.push_back({ends[end].id, end - start});
      end = start;
    }
    std::reverse(spans.begin(), spans.end());
  }

  // Joins neighbours, the pair with the best score first, of equal ones the leftmost. `skips`: pairs that are passed
  // over (BPE-dropout, Provilkov et al. 2020, as SentencePiece has it: once for each time two neighbours meet).
  void merge_pairs(std::string_view text, std::vector<Span>& spans, Skips* skips) const {
    struct Symbol {
      std::int32_t before, behind;  // −1: none
      bool fixed;                   // defined by the user: joined with nothing
      std::size_t begin, length;
    };
    struct Pair {
      float score;
      std::int32_t left, right;
      std::size_t length;
      bool operator<(const Pair& other) const { return score != other.score ? score < other.score : left > other.left; }
    };
    std::vector<Symbol> symbols;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t defined = user_.empty() ? 0 : user_.longest(text.substr(at));
      const std::size_t length = defined > 0 ? defined : std::min(character_length(text[at]), text.size() - at);
      const auto index = static_cast<std::int32_t>(symbols.size());
      symbols.push_back({index - 1, at + length == text.size() ? -1 : index + 1, defined > 0, at, length});
      at += length;
    }
    const auto symbol = [&](std::int32_t i) -> Symbol& { return symbols[static_cast<std::size_t>(i)]; };
    std::priority_queue<Pair> pairs;
    std::unordered_map<std::string_view, std::size_t>
        unused;  // what was joined to no use: where it can be parted again
    const auto consider = [&](std::int32_t left, std::int32_t right) {
      if (left == -1 || right == -1 || symbol(left).fixed || symbol(right).fixed) return;
      const std::string_view joined = text.substr(symbol(left).begin, symbol(left).length + symbol(right).length);
      const auto found = ids_.find(joined);
      if (found == ids_.end()) return;
      pairs.push({score(found->second), left, right, joined.size()});
      if (type(found->second) == PieceType::kUnused) unused[joined] = symbol(left).length;
    };
    for (std::size_t i = 1; i < symbols.size(); ++i) {
      consider(static_cast<std::int32_t>(i) - 1, static_cast<std::int32_t>(i));
    }
    while (!pairs.empty()) {
      const Pair best = pairs.top();
      pairs.pop();
      Symbol& left = symbol(best.left);
      Symbol& right = symbol(best.right);
      if (left.length == 0 || right.length == 0 || left.length + right.length != best.length) continue;
      if (skips != nullptr && skips->next()) continue;
      left.length = best.length;
      left.behind = right.behind;
      if (right.behind >= 0) symbol(right.behind).before = best.left;
      right.length = 0;
      consider(left.before, best.left);
      consider(best.left, left.behind);
    }
    std::vector<std::string_view> parts;
    for (std::int32_t i = symbols.empty() ? -1 : 0; i != -1; i = symbol(i).behind) {
      parts.assign(1, text.substr(symbol(i).begin, symbol(i).length));
      while (!parts.empty()) {
        const std::string_view part = parts.back();
        parts.pop_back();
        const std::int32_t id = id_of(part);
        const auto found = type(id) == PieceType::kUnused ? unused.find(part) : unused.end();
        if (found == unused.end()) {
          spans.push_back({id, part.size()});
        } else {
          parts.push_back(part.substr(found->second));
          parts.push_back(part.substr(0, found->second));
        }
      }
    }
  }

  std::int32_t id_of(std::string_view text) const {
    if (const auto found = reserved_.find(text); found != reserved_.end()) return found->second;
    const auto found = ids_.find(text);
    return found == ids_.end() ? special_.unknown : found->second;
  }

  std::string bytes_;
  PieceModel model_;
  Rules rules_;
  SpecialIds special_;
  std::unordered_map<std::string_view, std::int32_t> ids_, reserved_;  // of texts in model_
  Trie trie_, user_;
  std::array<std::int32_t, 256> byte_ids_ = {};
  float least_ = 0, most_ = 0;  // scores of usual pieces
};

}  // namespace

std::unique_ptr<Tokenizer> read_pieces(std::string_view model) {
  if (model.size() > Tokenizer::kLargest) {
    fail(ErrorKind::kLimit, "tokenizer (pieces): ", model.size(), " bytes are too many");
  }
  return std::make_unique<Pieces>(model);
}

}  // namespace regard
