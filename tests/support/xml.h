// Whether a text is well-formed XML, as far as our own SVG goes: every element is closed by its name, attributes are
// quoted, nothing unescaped. Gives what is wrong, "" if nothing is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace regard {

inline std::string wrong_in_xml(std::string_view text) {
  std::vector<std::string_view> open;
  const auto near = [&](std::size_t at) { return std::string(text.substr(at, 60)); };
  std::size_t roots = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '&') {
      const std::string_view rest = text.substr(at);
      bool known = false;
      for (const std::string_view name : {"&amp;", "&lt;", "&gt;", "&quot;"}) known = known || rest.starts_with(name);
      if (!known) return "an ampersand: " + near(at);
    }
    if (text[at] != '<') {
      ++at;
      continue;
    }
    const bool closing = text.substr(at).starts_with("</");
    const std::size_t first = at + (closing ? 2 : 1), name_end = text.find_first_of(" />", first);
    if (name_end == std::string_view::npos || name_end == first) return "an element: " + near(at);
    const std::string_view name = text.substr(first, name_end - first);
    std::size_t end = name_end;
    bool quoted = false;
    while (end < text.size() && (quoted || text[end] != '>')) {
      if (text[end] == '"') quoted = !quoted;
      if (quoted && text[end] == '<') return "in an attribute: " + near(at);
      ++end;
    }
    if (end == text.size()) return "no end: " + near(at);
    if (closing) {
      if (open.empty() || open.back() != name) return "closed wrongly: " + near(at);
      open.pop_back();
    } else if (text[end - 1] != '/') {
      if (open.empty()) ++roots;
      open.push_back(name);
    }
    at = end + 1;
  }
  if (!open.empty()) return "not closed: " + std::string(open.back());
  return roots == 1 ? "" : "not one root";
}

}  // namespace regard
