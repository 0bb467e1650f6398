#include "serve/html.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <utility>

#include "base/utf8.h"

namespace regard::serve {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\f";

bool is_blank(char c) { return kBlanks.find(c) != std::string_view::npos; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) { return lower(c); });
  return out;
}

template <std::size_t count>
bool is_one_of(const std::array<std::string_view, count>& all, std::string_view name) {
  return std::find(all.begin(), all.end(), name) != all.end();
}

// Those that stand around words of a sentence; all others end it.
constexpr std::array<std::string_view, 32> kInline = {
    "a",      "abbr", "acronym", "b",    "bdi",   "bdo",  "big", "cite", "data",  "del",   "dfn",
    "em",     "font", "i",       "ins",  "label", "mark", "q",   "s",    "small", "span",  "strike",
    "strong", "sub",  "sup",     "time", "tt",    "u",    "wbr", "img",  "input", "button"};
constexpr std::array<std::string_view, 3> kEmptyInline = {"wbr", "img", "input"};
// Left as they are with all they hold: within a sentence, and between sentences.
constexpr std::array<std::string_view, 6> kKeptInline = {"code", "kbd", "samp", "var", "svg", "math"};
constexpr std::array<std::string_view, 10> kKept = {"script", "style",  "pre",      "textarea", "template",
                                                    "iframe", "object", "noscript", "select",   "canvas"};
// Their content is no HTML: it ends at the first end tag.
constexpr std::array<std::string_view, 3> kNoMarkup = {"script", "style", "textarea"};

struct Tag {
  std::string_view raw;   // all of it, with its brackets
  std::string name = {};  // lower case; "": a comment or the like
  bool closes = false;
  bool empty = false;  // <img/>
};

// The tag at `at`, where a '<' stands; none: it is text. Without any text of its own: it never ends.
std::optional<Tag> tag_at(std::string_view page, std::size_t at) {
  const std::string_view rest = page.substr(at);
  const auto until = [&](std::string_view end) {
    const std::size_t found = rest.find(end);
    return Tag{.raw = rest.substr(0, found == std::string_view::npos ? rest.size() : found + end.size())};
  };
  if (rest.starts_with("<!--")) return until("-->");
  if (rest.starts_with("<!") || rest.starts_with("<?")) return until(">");
  std::size_t i = 1;
  Tag tag;
  if (i < rest.size() && rest[i] == '/') {
    tag.closes = true;
    ++i;
  }
  if (i >= rest.size() || !is_letter(rest[i])) return std::nullopt;
  const std::size_t name = i;
  while (i < rest.size() && !is_blank(rest[i]) && rest[i] != '>' && rest[i] != '/') ++i;
  tag.name = lower(rest.substr(name, i - name));
  char quote = 0;
  for (; i < rest.size(); ++i) {
    if (quote != 0) {
      if (rest[i] == quote) quote = 0;
    } else if ((rest[i] == '"' || rest[i] == '\'') && rest[i - 1] == '=') {
      quote = rest[i];
    } else if (rest[i] == '>') {
      tag.raw = rest.substr(0, i + 1);
      tag.empty = rest[i - 1] == '/';
      return tag;
    }
  }
  return Tag{.raw = {}};  // never closed
}

bool says_keep(const Tag& tag) {
  const std::string raw = lower(tag.raw);
  return raw.find("translate=\"no\"") != std::string::npos || raw.find("translate=no") != std::string::npos ||
         raw.find("translate='no'") != std::string::npos || raw.find("notranslate") != std::string::npos;
}

struct Entity {
  std::string_view name;
  char32_t code;
};
constexpr Entity kEntities[] = {
    {"amp", '&'},       {"lt", '<'},       {"gt", '>'},       {"quot", '"'},     {"apos", '\''},    {"nbsp", 0xA0},
    {"copy", 0xA9},     {"reg", 0xAE},     {"deg", 0xB0},     {"middot", 0xB7},  {"laquo", 0xAB},   {"raquo", 0xBB},
    {"ndash", 0x2013},  {"mdash", 0x2014}, {"lsquo", 0x2018}, {"rsquo", 0x2019}, {"ldquo", 0x201C}, {"rdquo", 0x201D},
    {"hellip", 0x2026}, {"bull", 0x2022},  {"euro", 0x20AC},  {"times", 0xD7},   {"trade", 0x2122}, {"eacute", 0xE9},
    {"egrave", 0xE8},   {"agrave", 0xE0},  {"ccedil", 0xE7},  {"auml", 0xE4},    {"ouml", 0xF6},    {"uuml", 0xFC},
    {"szlig", 0xDF}};

struct Reference {
  std::size_t length = 0;             // bytes of the page, with & and ;
  std::optional<char32_t> code = {};  // none: not known to us, but well formed
};

// What stands at an '&'; none: it is only that letter.
std::optional<Reference> reference_at(std::string_view page, std::size_t at) {
  constexpr std::size_t kLongest = 33;
  const std::string_view rest = page.substr(at, kLongest);
  const std::size_t end = rest.find(';');
  if (end == std::string_view::npos || end < 2) return std::nullopt;
  const std::string_view name = rest.substr(1, end - 1);
  if (name[0] == '#') {
    const bool hexadecimal = name.size() > 1 && lower(name[1]) == 'x';
    const std::string_view digits = name.substr(hexadecimal ? 2 : 1);
    if (digits.empty() || digits.size() > 8) return std::nullopt;
    std::uint64_t code = 0;
    for (const char each : digits) {
      const char c = lower(each);
      const int digit = c >= '0' && c <= '9' ? c - '0' : hexadecimal && c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
      if (digit < 0) return std::nullopt;
      code = code * (hexadecimal ? 16 : 10) + static_cast<std::uint64_t>(digit);
    }
    if (code == 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) code = 0xFFFD;
    return Reference{end + 1, static_cast<char32_t>(code)};
  }
  for (const char c : name) {
    if (!is_letter(c) && (c < '0' || c > '9')) return std::nullopt;
  }
  for (const Entity& each : kEntities) {
    if (each.name == name) return Reference{end + 1, each.code};
  }
  return Reference{end + 1, std::nullopt};
}

void escape(std::string& out, std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '&') {
      out += "&amp;";
    } else if (text[i] == '<') {
      out += "&lt;";
    } else if (text[i] == '>') {
      out += "&gt;";
    } else if (text.substr(i, 2) == "\xC2\xA0") {
      out += "&nbsp;";
      ++i;
    } else {
      out += text[i];
    }
  }
}

}  // namespace

class Html::Reader {
 public:
  Reader(std::string_view page, std::size_t deepest) : page_(page), deepest_(deepest) {}

  std::pair<std::vector<Line>, std::string> read() {
    while (at_ < page_.size()) {
      const char c = page_[at_];
      if (c == '<') {
        const std::optional<Tag> tag = no_more_tags_ ? std::nullopt : tag_at(page_, at_);
        if (tag && !tag->raw.empty()) {
          add_tag(*tag);
          continue;
        }
        no_more_tags_ = no_more_tags_ || tag.has_value();  // not to look for its end again and again
      } else if (c == '&') {
        if (const std::optional<Reference> reference = reference_at(page_, at_)) {
          if (!reference->code) {
            add_point(std::string(page_.substr(at_, reference->length)));
          } else if (const char32_t code = *reference->code; code < 0x80 && is_blank(static_cast<char>(code))) {
            add_letter(' ');
          } else {
            blank_before_letter();
            utf8::append(line_.text, code);
          }
          at_ += reference->length;
          continue;
        }
      }
      add_letter(c);
      ++at_;
    }
    end_line("");
    return {std::move(lines_), std::move(before_)};
  }

 private:
  // Blanks become one, and none at the begin.
  void add_letter(char c) {
    if (is_blank(c)) {
      blank_ = true;
    } else {
      blank_before_letter();
      line_.text += c;
    }
  }
  void blank_before_letter() {
    if (!std::exchange(blank_, false)) return;
    if (line_.text.empty()) {
      before_ += ' ';
    } else if (line_.text.back() != ' ') {
      line_.text += ' ';
    } else if (!line_.points.empty() && line_.points.back().at == line_.text.size()) {
      line_.points.back().raw += ' ';  // blanks on both sides of it
    }
  }

  struct Open {
    std::size_t element;
    std::size_t points;  // how many there were
    std::string name;
  };

  void add_point(std::string raw) {
    blank_before_letter();  // it stands behind it
    line_.points.push_back({std::move(raw), line_.text.size()});
  }

  void add_tag(const Tag& tag) {
    at_ += tag.raw.size();
    if (tag.name.empty()) return add_point(std::string(tag.raw));
    const bool inside = is_one_of(kInline, tag.name) || is_one_of(kKeptInline, tag.name);
    const bool keep = is_one_of(kKept, tag.name) || is_one_of(kKeptInline, tag.name) || says_keep(tag);
    if (keep && !tag.closes && !tag.empty) {
      const std::size_t begin = at_ - tag.raw.size();
      skip_to_end_of(tag.name);
      const std::string raw(page_.substr(begin, at_ - begin));
      return inside ? add_point(raw) : end_line(raw);
    }
    if (!inside) return end_line(tag.raw);
    if (tag.empty || is_one_of(kEmptyInline, tag.name)) return add_point(std::string(tag.raw));
    if (tag.closes) return close(tag);
    if (open_.size() >= deepest_) return add_point(std::string(tag.raw));
    blank_before_letter();
    open_.push_back({line_.elements.size(), line_.points.size(), tag.name});
    line_.elements.push_back({std::string(tag.raw), "", line_.text.size(), 0, -1});
  }

  void skip_to_end_of(const std::string& name) {
    const bool markup = !is_one_of(kNoMarkup, name);
    for (std::int64_t depth = 1; at_ < page_.size();) {
      const std::size_t next = page_.find('<', at_);
      if (next == std::string_view::npos) break;
      at_ = next;
      if (!markup) {  // comments and quotes mean nothing there
        if (page_.substr(at_, 2) == "</" && lower(page_.substr(at_ + 2, name.size())) == name) {
          const std::size_t end = page_.find('>', at_);
          at_ = end == std::string_view::npos ? page_.size() : end + 1;
          return;
        }
        ++at_;
        continue;
      }
      const std::optional<Tag> tag = tag_at(page_, at_);
      if (tag && tag->raw.empty()) break;
      at_ += tag ? tag->raw.size() : 1;
      if (!tag || tag->name != name || tag->empty) continue;
      depth += tag->closes ? -1 : 1;
      if (depth == 0) return;
    }
    at_ = page_.size();
  }

  void close(const Tag& tag) {
    std::size_t place = open_.size();
    while (place > 0 && open_[place - 1].name != tag.name) --place;
    if (place == 0) return add_point(std::string(tag.raw));
    while (open_.size() > place) give_up();  // what is not closed within
    const Open opened = open_.back();
    open_.pop_back();
    Element& element = line_.elements[opened.element];
    if (element.begin < line_.text.size()) {
      element.close = tag.raw;
      element.end = line_.text.size();
      return;
    }
    // It has no text: it is one thing with whatever it holds, all of which stands at the same place.
    std::string raw = element.open;
    for (std::size_t i = opened.points; i < line_.points.size(); ++i) raw += line_.points[i].raw;
    raw += tag.raw;
    line_.points.resize(opened.points);
    line_.points.push_back({std::move(raw), line_.text.size()});
    line_.elements.resize(opened.element);
  }

  // An element that is never closed is a tag at its place; its number stays, so that others keep theirs.
  void give_up() {
    const Open opened = open_.back();
    open_.pop_back();
    Element& element = line_.elements[opened.element];
    line_.points.insert(line_.points.begin() + static_cast<std::ptrdiff_t>(opened.points),
                        {std::move(element.open), element.begin});
    element = {};
    for (Open& each : open_) {
      if (each.points > opened.points) ++each.points;
    }
  }

  void end_line(std::string_view raw) {
    while (!open_.empty()) give_up();
    std::erase_if(line_.elements, [](const Element& each) { return each.close.empty(); });
    if (line_.text.empty()) {
      // Nothing to translate: points and blanks are part of what stands before the next line.
      for (const Point& each : line_.points) before_ += each.raw;
      if (blank_) before_ += ' ';
      before_ += raw;
    } else {
      line_.before = std::exchange(before_, std::string(raw));
      if (blank_) before_.insert(before_.begin(), ' ');
      find_parents();
      lines_.push_back(std::move(line_));
    }
    blank_ = false;
    line_ = {};
  }

  void find_parents() {
    std::vector<Element>& all = line_.elements;
    std::vector<std::size_t> around;
    for (std::size_t i = 0; i < all.size(); ++i) {
      while (!around.empty() && all[around.back()].end <= all[i].begin) around.pop_back();
      all[i].parent = around.empty() ? -1 : static_cast<std::int64_t>(around.back());
      around.push_back(i);
    }
  }

  std::string_view page_;
  std::size_t deepest_;
  std::size_t at_ = 0;
  bool no_more_tags_ = false;
  bool blank_ = false;  // one was seen, and nothing behind it yet
  Line line_;
  std::vector<Open> open_;
  std::string before_;
  std::vector<Line> lines_;
};

Html::Html(std::string_view page, std::int64_t deepest) {
  std::tie(lines_, end_) = Reader(page, static_cast<std::size_t>(std::max<std::int64_t>(0, deepest))).read();
}

std::vector<std::string> Html::lines() const {
  std::vector<std::string> texts;
  for (const Line& each : lines_) texts.push_back(each.text);
  return texts;
}

bool Html::has_tags(std::size_t line) const { return !lines_[line].elements.empty() || !lines_[line].points.empty(); }

namespace {

using Stack = std::vector<std::size_t>;  // elements, outer ones first

std::size_t common(const Stack& a, const Stack& b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

std::string Html::put(const Line& line, const TranslatedLine& translated) {
  std::string out;
  if (line.elements.empty() && line.points.empty()) {
    escape(out, translated.text);
    return out;
  }
  const std::size_t sources = translated.source.size(), targets = translated.target.size();

  // Which elements each word of the line is in. Both come in the order of the text.
  std::vector<Stack> of_source(sources);
  {
    Stack now;
    std::size_t next = 0;
    for (std::size_t u = 0; u < sources; ++u) {
      const TextUnit& word = translated.source[u];
      while (!now.empty() && line.elements[now.back()].end <= word.begin) now.pop_back();
      for (; next < line.elements.size() && line.elements[next].begin < word.end; ++next) {
        const Element& element = line.elements[next];
        if (element.end <= word.begin) continue;
        const std::int64_t inner = now.empty() ? -1 : static_cast<std::int64_t>(now.back());
        if (element.parent == inner) now.push_back(next);  // else it is beside another one within the same word
      }
      of_source[u] = now;
    }
  }
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::vector<std::size_t> link(targets, kNone), first_target(sources, kNone);
  for (const Link& each : translated.links) {
    const auto s = static_cast<std::size_t>(each.source), t = static_cast<std::size_t>(each.target);
    if (s >= sources || t >= targets) continue;
    if (link[t] == kNone) link[t] = s;
    first_target[s] = std::min(first_target[s], t);
  }
  std::vector<Stack> of_target(targets);
  for (std::size_t t = 0; t < targets; ++t) {
    if (link[t] != kNone) of_target[t] = of_source[link[t]];
  }
  for (std::size_t t = 0; t < targets;) {  // a word from nowhere is in what both its neighbours are in
    if (link[t] != kNone) {
      ++t;
      continue;
    }
    std::size_t end = t;
    while (end < targets && link[end] == kNone) ++end;
    if (t > 0 && end < targets) {
      Stack both = of_target[t - 1];
      both.resize(common(both, of_target[end]));
      for (std::size_t i = t; i < end; ++i) of_target[i] = both;
    }
    t = end;
  }

  // What stands between words: points, and elements that no word of the translation is in.
  std::vector<bool> used(line.elements.size(), false);
  for (const Stack& each : of_target) {
    for (const std::size_t element : each) used[element] = true;
  }
  std::vector<std::string> before(targets + 1);  // the last: at the end
  {
    struct Loose {
      std::size_t at, order;
      std::string raw;
    };
    std::vector<Loose> loose;
    for (const Point& each : line.points) loose.push_back({each.at, loose.size(), each.raw});
    for (std::size_t i = 0; i < line.elements.size(); ++i) {
      if (!used[i])
        loose.push_back({line.elements[i].begin, loose.size(), line.elements[i].open + line.elements[i].close});
    }
    std::stable_sort(loose.begin(), loose.end(), [](const Loose& a, const Loose& b) { return a.at < b.at; });
    std::vector<std::size_t> place(sources + 1, targets);  // of a word of the line, or of the next one that has one
    for (std::size_t u = sources; u-- > 0;) place[u] = first_target[u] != kNone ? first_target[u] : place[u + 1];
    std::size_t u = 0;
    for (const Loose& each : loose) {
      while (u < sources && translated.source[u].end <= each.at) ++u;
      before[u < sources ? place[u] : targets] += each.raw;
    }
  }

  Stack open;
  const auto leave = [&](std::size_t depth) {
    for (; open.size() > depth; open.pop_back()) out += line.elements[open.back()].close;
  };
  std::size_t at = 0;
  for (std::size_t t = 0; t < targets; ++t) {
    const TextUnit& word = translated.target[t];
    leave(common(open, of_target[t]));
    escape(out, std::string_view(translated.text).substr(at, word.begin - at));
    out += before[t];
    for (std::size_t i = open.size(); i < of_target[t].size(); ++i) {
      open.push_back(of_target[t][i]);
      out += line.elements[open.back()].open;
    }
    escape(out, std::string_view(translated.text).substr(word.begin, word.end - word.begin));
    at = word.end;
  }
  leave(0);
  escape(out, std::string_view(translated.text).substr(at));
  return out + before[targets];
}

std::string Html::put(std::span<const TranslatedLine> translated) const {
  std::string out;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    out += lines_[i].before;
    out += put(lines_[i], translated[i]);
  }
  return out + end_;
}

}  // namespace regard::serve
