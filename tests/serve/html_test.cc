// Tags stay at their words, whatever the page looks like.
#include "serve/html.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "support/cases.h"

namespace regard::serve {
namespace {

std::vector<std::string> lines_of(std::string_view page) { return Html(page, 64).lines(); }

// A translation that is its source: word i comes from word i.
TranslatedLine same(const std::string& line) {
  TranslatedLine made{.text = line, .source = words_of(line, WordCut::kBlanks)};
  made.target = made.source;
  for (std::size_t i = 0; i < made.source.size(); ++i) {
    made.links.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(i)});
  }
  return made;
}

std::string unchanged(std::string_view page, std::int64_t deepest = 64) {
  const Html html(page, deepest);
  std::vector<TranslatedLine> lines;
  for (const std::string& each : html.lines()) lines.push_back(same(each));
  return html.put(lines);
}

// One line whose words come from the given words of the source.
std::string translated(std::string_view page, const std::string& text, const Links& links) {
  const Html html(page, 64);
  const std::vector<std::string> lines = html.lines();
  EXPECT_EQ(lines.size(), 1u);
  TranslatedLine made{.text = text, .source = words_of(lines.at(0), WordCut::kBlanks)};
  made.target = words_of(text, WordCut::kBlanks);
  made.links = links;
  return html.put(std::vector{made});
}

using Texts = std::vector<std::string>;

TEST(Html, ParagraphsAreLinesWithoutTagsAndEntities) {
  EXPECT_EQ(lines_of("<p>one <b>two</b></p><p>three &amp; four</p>"), (Texts{"one two", "three & four"}));
  EXPECT_EQ(lines_of("plain text"), (Texts{"plain text"}));
  EXPECT_EQ(lines_of("a<br>b<hr/>c"), (Texts{"a", "b", "c"}));
  EXPECT_EQ(lines_of(" <p> much \n\t blank </p> "), (Texts{"much blank"}));
  EXPECT_EQ(lines_of(""), Texts{});
  EXPECT_EQ(lines_of("<div><img></div> &nbsp;"), (Texts{"\xC2\xA0"}));
}

TEST(Html, ScriptStyleAndWhatSaysNoIsLeftAlone) {
  for (const char* page : {"<script>if (a<b) x('</p>')</script>", "<style>p > b {}</style>", "<pre>a <b>c</b></pre>",
                           "<div translate=\"no\">a <div>b</div> c</div>", "<!-- a -->", "<textarea>a</textarea>",
                           "<!DOCTYPE html>", "<script>never closed"}) {
    EXPECT_EQ(lines_of(page), Texts{}) << page;
    EXPECT_EQ(unchanged(page), page);
  }
  EXPECT_EQ(lines_of("use <code>a b</code> now"), (Texts{"use now"}));
  EXPECT_EQ(unchanged("use <code>a b</code> now"), "use <code>a b</code> now");
}

TEST(Html, WhatIsNotTranslatedKeepsItsPlace) {
  for (const char* page : {"<p>one <b>two</b> three</p>", "<ul><li>a</li><li><i>b</i></li></ul>", "a <img src='x'>b",
                           "<b>a</b> c", "<p><a href=\"?a=1&b=2\">a <i>b</i></a> c</p>", "a &amp; b &lt;c&gt;",
                           "<p class=\"a>b\">a</p>", "<b>a <i>b</i></b>", "a <b>c", "a </b>c", "1 < 2", "a & b"}) {
    std::string expected = page;
    if (expected == "1 < 2") expected = "1 &lt; 2";
    if (expected == "a & b") expected = "a &amp; b";
    EXPECT_EQ(unchanged(page), expected);
  }
}

TEST(Html, ATagGoesWithItsWords) {
  EXPECT_EQ(translated("<p>a <b>b</b> c</p>", "C B A", {{0, 2}, {1, 1}, {2, 0}}), "<p>C <b>B</b> A</p>");
  EXPECT_EQ(translated("<b>a</b> b c", "B C A", {{0, 2}, {1, 0}, {2, 1}}), "B C <b>A</b>");
  EXPECT_EQ(translated("<b>a b</b> c", "A C B", {{0, 0}, {1, 2}, {2, 1}}), "<b>A</b> C <b>B</b>");
  EXPECT_EQ(translated("<b>a b</b> c", "A X B C", {{0, 0}, {1, 2}, {2, 3}}), "<b>A X B</b> C");
  EXPECT_EQ(translated("<a><b>a</b> b</a>", "B A", {{0, 1}, {1, 0}}), "<a>B <b>A</b></a>");
}

TEST(Html, NoTagIsLost) {
  EXPECT_EQ(translated("a <b>b</b> c", "A C", {{0, 0}, {2, 1}}), "A <b></b>C");
  EXPECT_EQ(translated("a <img> b", "B A", {{0, 1}, {1, 0}}), "<img> B A");
  EXPECT_EQ(translated("a <a><img></a> b", "A B", {{0, 0}, {1, 1}}), "A <a><img></a> B");
  EXPECT_EQ(translated("a<b>b</b><i>c</i> d", "D", {{1, 0}}), "<b></b><i></i>D");
  EXPECT_EQ(translated("<b>a</b>", "A", {}), "A<b></b>");
  EXPECT_EQ(translated("<b>a</b>", "", {}), "<b></b>");
}

TEST(Html, EntitiesAreReadAndWritten) {
  EXPECT_EQ(lines_of("&lt;b&gt; &quot;a&quot; &#20320;&#x597D; &eacute;"), (Texts{"<b> \"a\" 你好 é"}));
  EXPECT_EQ(lines_of("&#0; &#xD800; &#x110000; &#99999999;"),
            (Texts{"\xEF\xBF\xBD \xEF\xBF\xBD \xEF\xBF\xBD \xEF\xBF\xBD"}));
  EXPECT_EQ(lines_of("a & b &; &#; &#x; &#zz;"), (Texts{"a & b &; &#; &#x; &#zz;"}));
  EXPECT_EQ(unchanged("x &alpha; y"), "x &alpha; y");
  EXPECT_EQ(unchanged("a&nbsp;b"), "a&nbsp;b");
  EXPECT_EQ(translated("a", "<script>&", {{0, 0}}), "&lt;script&gt;&amp;");
}

std::size_t count(std::string_view text, char letter) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), letter));
}

TEST(Html, NothingIsTooStrange) {
  std::mt19937 random(7);
  const std::string_view parts[] = {"<b>",   "</b>", "<i>",  "</i>",   "<p>",    "</p>",     "<a href=\"", "\">",
                                    "<img>", "<",    ">",    "&",      ";",      "&amp;",    "#",          "a",
                                    " ",     "\n",   "<!--", "-->",    "</",     "<script>", "</script>",  "你",
                                    "\xff",  "'",    "=",    "<code>", "</code>"};
  for (int i = 0; i < cases(3000); ++i) {
    std::string page;
    for (auto k = random() % 30; k > 0; --k) page += parts[random() % std::size(parts)];
    const Html html(page, 3);
    std::vector<TranslatedLine> lines;
    for (const std::string& each : html.lines()) {
      TranslatedLine line = same(each);
      Links links;  // at random, and out of range
      for (const Link& link : line.links) {
        if (random() % 3 > 0) links.push_back({static_cast<std::int32_t>(random() % 8), link.target});
      }
      line.links = links;
      lines.push_back(std::move(line));
    }
    const std::string out = html.put(lines);
    if (page.find("<!--") == std::string::npos) {
      EXPECT_GE(count(out, '<') + count(out, '&'), count(page, '<') > 0 ? 1u : 0u) << page;
    }
    EXPECT_LE(out.size(), 200 * page.size() + 10);
  }
}

TEST(Html, ManyAndDeepTagsTakeTimeByTheirNumber) {
  std::string deep, unclosed, quotes, stray;
  for (int i = 0; i < 20'000; ++i) {
    deep += "<b>a ";
    unclosed += "<a ";
    quotes += "<a =\"";
    stray += "</b>a ";
  }
  for (int i = 0; i < 20'000; ++i) deep += "</b>";
  for (const std::string& page :
       {deep, unclosed, quotes, quotes + ">", stray, std::string(100'000, '<'), std::string(100'000, '&')}) {
    EXPECT_FALSE(unchanged(page).empty());
  }
  EXPECT_EQ(unchanged("<b><b><b>a</b></b></b>", 2), "<b><b><b>a</b></b></b>");
}

}  // namespace
}  // namespace regard::serve
