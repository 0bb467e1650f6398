// HTML whose text is translated and whose tags stay at their words.
//
//     const Html page("<p>他们<b>在看</b>。</p>", 64);
//     page.lines()                                     // {"他们在看。"}: one a paragraph, without tags and entities
//     page.put({{.text = "They are watching.", .source = …, .target = …, .links = …}})
//                                                      // "<p>They <b>are watching</b>.</p>"
//
// Paragraphs, list items and the like are translated each by itself. A tag within one (b, a, span, …) is put around the
// words that come from the words it stood around, opened again if these are apart. What has no words, or is not closed,
// keeps its place before the next word. Script, style, pre and what says translate="no" is left as it is. Nothing is
// ever an error: what is no HTML is text. Time and memory grow with the length of the page alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/links.h"
#include "tasks/text_units.h"

namespace regard::serve {

struct TranslatedLine {
  std::string text;                   // of the translation
  std::vector<TextUnit> source = {};  // words of the line
  std::vector<TextUnit> target = {};  // and of the translation
  Links links = {};                   // between them
};

class Html {
 public:
  Html(std::string_view page, std::int64_t deepest);

  std::vector<std::string> lines() const;
  bool has_tags(std::size_t line) const;                              // whether words and links are needed
  std::string put(std::span<const TranslatedLine> translated) const;  // one a line

 private:
  struct Element {  // around bytes [begin, end) of the text
    std::string open, close;
    std::size_t begin = 0, end = 0;
    std::int64_t parent = -1;
  };
  struct Point {  // something between two bytes of the text
    std::string raw;
    std::size_t at = 0;
  };
  struct Line {
    std::string before;  // what stands before it on the page, as it is
    std::string text;
    std::vector<Element> elements;  // an outer one before an inner one
    std::vector<Point> points;
  };
  class Reader;
  static std::string put(const Line& line, const TranslatedLine& translated);

  std::vector<Line> lines_;
  std::string end_;  // what stands behind the last line
};

}  // namespace regard::serve
