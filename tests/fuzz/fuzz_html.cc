// HTML, and translations put into it. The first bytes say which words of the translation come from which of the line.
#include <algorithm>

#include "base/utf8.h"
#include "fuzz/target.h"
#include "serve/html.h"

namespace regard::serve {
namespace {

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

// A tag moves past what it stands beside, and with it a blank; letters stay.
std::vector<std::string> without_blanks(std::vector<std::string> lines) {
  for (std::string& each : lines) {
    std::erase_if(each, [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); });
  }
  return lines;
}

void fuzz_html(std::string_view bytes) {
  Input input(bytes);
  const std::size_t deepest = input.below(70), words = input.below(12), turn = input.below(8), skip = input.below(8);
  const std::string_view page = input.rest();
  if (!utf8::valid(page)) return;  // the server takes no other
  const Html html(page, static_cast<std::int64_t>(deepest));
  const std::vector<std::string> lines = html.lines();

  // Every line as it is: the same lines are read again.
  std::vector<TranslatedLine> same, other;
  for (const std::string& line : lines) {
    TranslatedLine& made = same.emplace_back();
    made.text = line;
    made.source = made.target = words_of(line, WordCut::kAutomatic);
    for (std::size_t i = 0; i < made.source.size(); ++i) {
      made.links.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(i)});
    }
    // Other words, linked somehow.
    TranslatedLine& changed = other.emplace_back();
    changed.source = made.source;
    for (std::size_t i = 0; i < words; ++i) {
      if (i > 0) changed.text += ' ';
      changed.target.push_back({changed.text.size(), changed.text.size() + 2});
      changed.text += "w.";
      if (i % 8 == skip) continue;
      changed.links.push_back({static_cast<std::int32_t>((i * turn + skip) % (made.source.size() + 1)),
                               static_cast<std::int32_t>((i * 5 + turn) % words)});
    }
    changed.links = sorted(changed.links);
  }
  const std::string kept = html.put(same);
  hold(without_blanks(Html(kept, static_cast<std::int64_t>(deepest)).lines()) == without_blanks(lines),
       "the same text is read as the same lines");
  const std::string changed = html.put(other);
  Html(changed, static_cast<std::int64_t>(deepest)).lines();

  // A '<' is part of a tag, which stays, or of the text.
  std::size_t in_text = 0;
  for (const std::string& line : lines) in_text += count(line, "<");
  hold(count(kept, "<") + count(kept, "&lt;") >= count(page, "<"), "no bracket is lost");
  hold(count(changed, "<") + in_text >= count(page, "<"), "no tag is lost");
}

const FuzzTarget target("html", fuzz_html);

}  // namespace
}  // namespace regard::serve
