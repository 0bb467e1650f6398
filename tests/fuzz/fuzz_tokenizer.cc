// Tokenizers. The first byte says of which kind; the text up to the next NUL is encoded.
#include "data/characters.h"
#include "data/pieces.h"
#include "data/sentences.h"
#include "data/words.h"
#include "fuzz/target.h"

namespace regard {
namespace {

void use(const Tokenizer& tokenizer, std::string_view text) {
  const std::vector<Token> tokens = tokenizer.encode(text);
  std::size_t before = 0;
  for (const Token& each : tokens) {
    hold(each.id >= 0 && each.id < tokenizer.size(), "an id is one of the vocabulary");
    hold(each.begin <= each.end && each.end <= text.size() && each.begin >= before, "tokens stand in their order");
    before = each.begin;
    tokenizer.piece(each.id);
  }
  const std::vector<std::int32_t> ids = ids_of(tokens);
  const std::string whole = tokenizer.decode(ids);
  for (const Token& each : tokenizer.places(ids)) {
    hold(each.begin <= each.end && each.end <= whole.size(), "places are within the text");
  }
  for (const TextPart& part : cut_long(text, tokens, 3)) {
    hold(part.begin <= part.end && part.end <= text.size(), "parts are within the text");
  }
}

void fuzz_tokenizer(std::string_view bytes) {
  Input input(bytes);
  const std::size_t kind = input.below(4);
  const std::string_view text = input.text(), model = input.rest();
  if (text.size() > 300) return;
  taken([&] {
    const std::unique_ptr<Tokenizer> tokenizer = kind == 0   ? read_words(model)
                                                 : kind == 1 ? read_characters(model)
                                                 : kind == 2 ? read_pieces(model)
                                                             : Tokenizer::from(model);
    if (tokenizer->size() > 5000) return;
    use(*tokenizer, text);
    use(*tokenizer, "They are watching 他们在看。 \xFF é");
    const std::string written = tokenizer->bytes();
    const std::unique_ptr<Tokenizer> again = Tokenizer::from(written);
    hold(again->bytes() == written && again->ids(text) == tokenizer->ids(text), "what is written reads as the same");
  });
}

const FuzzTarget target("tokenizer", fuzz_tokenizer);

}  // namespace
}  // namespace regard
