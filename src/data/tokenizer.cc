#include "data/tokenizer.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

#include "base/check.h"
#include "data/bytes.h"
#include "data/characters.h"
#include "data/pieces.h"
#include "data/words.h"

namespace regard {
namespace {

// magic · kind · payload · XXH3 of all before. A flipped bit is an Error, not another vocabulary.
constexpr std::string_view kMagic = "Regard tokenizer 1\n";
constexpr std::size_t kHash = 8;

std::string hash_of(std::string_view bytes) {
  std::uint64_t value = XXH3_64bits(bytes.data(), bytes.size());
  std::string out;
  for (std::size_t i = 0; i < kHash; ++i, value >>= 8) out += static_cast<char>(static_cast<unsigned char>(value));
  return out;
}

}  // namespace

std::vector<std::int32_t> ids_of(std::span<const Token> tokens) {
  std::vector<std::int32_t> ids;
  ids.reserve(tokens.size());
  for (const Token& token : tokens) ids.push_back(token.id);
  return ids;
}

std::vector<std::int32_t> Tokenizer::ids(std::string_view text) const { return ids_of(encode(text)); }

std::vector<std::int32_t> Tokenizer::cut_again(std::span<const std::int32_t> ids, double, RandomKey) const {
  return {ids.begin(), ids.end()};
}

std::string Tokenizer::bytes() const {
  ByteWriter out;
  out.raw(kMagic);
  out.text(kind());
  out.raw(payload());
  std::string bytes = out.take();
  return bytes + hash_of(bytes);
}

std::unique_ptr<Tokenizer> Tokenizer::from(std::string_view bytes) {
  const std::string_view what = "tokenizer";
  if (bytes.size() > kLargest) {
    fail(ErrorKind::kLimit, what, ": ", bytes.size(), " bytes are too many (at most ", kLargest, ")");
  }
  const bool ours = bytes.size() >= kMagic.size() + kHash && bytes.starts_with(kMagic);
  if (!ours) fail(ErrorKind::kFile, what, ": these bytes are no tokenizer");
  const std::string_view body = bytes.substr(0, bytes.size() - kHash);
  if (hash_of(body) != bytes.substr(body.size())) fail(ErrorKind::kFile, what, ": damaged (its hash is wrong)");
  ByteReader in(body.substr(kMagic.size()), what);
  const std::string_view kind = in.text();
  const std::string_view rest = in.raw(in.left());
  if (kind == "words") return read_words(rest);
  if (kind == "characters") return read_characters(rest);
  if (kind == "pieces") return read_pieces(rest);
  fail(ErrorKind::kFile, what, ": unknown kind (words, characters and pieces are known)");
}

std::vector<Token> Tokenizer::places(std::span<const std::int32_t> ids) const {
  const std::string whole = decode(ids);
  std::vector<Token> tokens;
  std::size_t before = 0;
  for (std::size_t count = 1; count <= ids.size(); ++count) {
    const std::string some = decode(ids.first(count));  // the last bytes of a letter may still be missing
    const auto differ = std::mismatch(whole.begin(), whole.end(), some.begin(), some.end()).first;
    std::size_t end = std::max(before, static_cast<std::size_t>(differ - whole.begin()));
    while (end > before && end < whole.size() && (static_cast<unsigned char>(whole[end]) & 0xC0) == 0x80) --end;
    std::size_t begin = before;
    while (begin < end && whole[begin] == ' ') ++begin;
    tokens.push_back({ids[count - 1], static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)});
    before = end;
  }
  return tokens;
}

void Tokenizer::check_text(std::string_view text) const {
  if (text.size() > kLongestText) {
    fail(ErrorKind::kLimit, "a text of ", text.size(), " bytes is too long (at most ", kLongestText, ")");
  }
}

void Tokenizer::check_id(std::int32_t id) const {
  check(id >= 0 && id < size(), "decode: there is no token ", id, ": the vocabulary has ", size());
}

Vocabulary::Vocabulary() : texts_{"<unk>", "<s>", "</s>", "<pad>"} {}

bool Vocabulary::add(std::string_view text) {
  if (!ids_.emplace(text, static_cast<std::int32_t>(texts_.size())).second) return false;
  texts_.emplace_back(text);
  return true;
}

std::int32_t Vocabulary::find(std::string_view text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? -1 : found->second;
}

std::vector<std::pair<std::string_view, std::uint64_t>> by_count(const TextCounts& counts) {
  std::vector<std::pair<std::string_view, std::uint64_t>> out(counts.begin(), counts.end());
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  return out;
}

}  // namespace regard
