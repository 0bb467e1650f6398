// Texts cut into words and characters.
#include "base/utf8.h"
#include "data/unicode.h"
#include "fuzz/target.h"
#include "tasks/text_units.h"

namespace regard {
namespace {

void within(const std::vector<TextUnit>& units, std::string_view text) {
  std::size_t before = 0;
  for (const TextUnit& each : units) {
    hold(before <= each.begin && each.begin <= each.end && each.end <= text.size(), "units stand in their order");
    before = each.end;
  }
}

void fuzz_text(std::string_view text) {
  for (const WordCut cut : {WordCut::kAutomatic, WordCut::kBlanks}) within(words_of(text, cut), text);
  within(characters_of(text), text);
  const JoinedText whole = joined(text);
  within(whole.words, whole.text);
  hold(whole.words.size() == words_of(text, WordCut::kBlanks).size(), "joined text has the same words");
  for (std::size_t at = 0; at < text.size();) {
    const Cluster cluster = next_cluster(text, at);
    hold(cluster.begin == at && cluster.end > at && cluster.end <= text.size(), "clusters follow each other");
    at = cluster.end;
  }
  bool valid = true;
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Letter letter = utf8::read(text, at);
    valid = valid && letter.valid;
    at += letter.length;
    hold(letter.length > 0 && at <= text.size(), "letters are within the text");
  }
  hold(valid == utf8::valid(text), "a text is as good as its letters");
  if (valid) hold(utf8::valid(to_lower(text)), "lower case is UTF-8");
}

const FuzzTarget target("text", fuzz_text);

}  // namespace
}  // namespace regard
