#include "data/characters.h"

#include <limits>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "data/bytes.h"
#include "data/unicode.h"

namespace regard {
namespace {

class Characters final : public Tokenizer {
 public:
  Characters(Vocabulary vocabulary, bool lower) : vocabulary_(std::move(vocabulary)), lower_(lower) {}

  std::vector<Token> encode(std::string_view text) const override {
    check_text(text);
    std::vector<Token> tokens;
    tokens.reserve(text.size());
    std::string letter;
    for (std::size_t at = 0; at < text.size();) {
      const utf8::Letter read = utf8::read(text, at);
      std::int32_t id = special().unknown;
      if (read.valid) {
        letter.clear();
        utf8::append(letter, lower_ ? to_lower(read.code) : read.code);
        const std::int32_t found = vocabulary_.find(letter);
        if (found >= 0) id = found;
      }
      const auto end = static_cast<std::uint32_t>(at + read.length);
      tokens.push_back({id, static_cast<std::uint32_t>(at), end});
      at = end;
    }
    return tokens;
  }

  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string out;
    for (const std::int32_t id : ids) {
      check_id(id);
      if (id == special().unknown) out += "⁇";
      if (id >= static_cast<std::int32_t>(Vocabulary::kSpecial)) out += vocabulary_.text(id);
    }
    return out;
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(vocabulary_.size()); }
  std::string piece(std::int32_t id) const override {
    check_id(id);
    return vocabulary_.text(id) == " " ? "▁" : vocabulary_.text(id);
  }
  std::string_view kind() const override { return "characters"; }

 protected:
  std::string payload() const override {
    ByteWriter out;
    out.number(lower_ ? 1 : 0);
    out.number(vocabulary_.size() - Vocabulary::kSpecial);
    for (std::size_t i = Vocabulary::kSpecial; i < vocabulary_.size(); ++i) {
      out.text(vocabulary_.text(static_cast<std::int32_t>(i)));
    }
    return out.take();
  }

 private:
  Vocabulary vocabulary_;
  bool lower_;
};

}  // namespace

std::unique_ptr<Tokenizer> build_characters(const EachText& texts, const CharacterSettings& settings) {
  check(settings.size > static_cast<std::int64_t>(Vocabulary::kSpecial) && settings.size <= Tokenizer::kMostIds,
        "a vocabulary may have 5 to ", Tokenizer::kMostIds, " ids, got ", settings.size);
  TextCounts counts;  // at most as many as Unicode has
  std::string letter;
  texts([&](std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const utf8::Letter read = utf8::read(text, at);
      at += read.length;
      if (!read.valid) continue;
      letter.clear();
      utf8::append(letter, settings.lower ? to_lower(read.code) : read.code);
      ++counts[letter];
    }
  });
  check(!counts.empty(), "there is no text to learn characters from");
  Vocabulary vocabulary;
  for (const auto& [text, count] : by_count(counts)) {
    if (static_cast<std::int64_t>(vocabulary.size()) >= settings.size) break;
    vocabulary.add(text);
  }
  return std::make_unique<Characters>(std::move(vocabulary), settings.lower);
}

std::unique_ptr<Tokenizer> read_characters(std::string_view payload) {
  ByteReader in(payload, "tokenizer (characters)");
  const bool lower = in.number(1) == 1;
  const std::size_t count = in.count();
  in.expect(count < static_cast<std::size_t>(Tokenizer::kMostIds), "has too many characters");
  Vocabulary vocabulary;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view text = in.text();
    const bool one = !text.empty() && utf8::read(text, 0).valid && utf8::read(text, 0).length == text.size();
    in.expect(one, "has an entry that is no character");
    in.expect(vocabulary.add(text), "has a character twice");
  }
  in.end();
  return std::make_unique<Characters>(std::move(vocabulary), lower);
}

}  // namespace regard
