// What is said on the standard error beside the results:
//
//     note("regard: {}:{}: {}\n", name, number, what);
//
// fmt::print throws if it cannot write. A full disk behind `2> log`, or a terminal that is gone, is no reason to end.
#pragma once

#include <fmt/format.h>

#include <cctype>
#include <cstdio>
#include <string>
#include <utility>

namespace regard::cli {

template <class... Parts>
void note(fmt::format_string<Parts...> form, Parts&&... parts) {
  const std::string line = fmt::format(form, std::forward<Parts>(parts)...);
  [[maybe_unused]] const std::size_t written = std::fwrite(line.data(), 1, line.size(), stderr);
}

// "Could not convert: --threads = abc" -> "could not convert: --threads = abc"
inline std::string one_line(std::string message) {
  for (char& letter : message) {
    if (letter == '\n') letter = ' ';
  }
  if (message.size() > 1 && message[1] >= 'a' && message[1] <= 'z') {
    message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
  }
  return message;
}

}  // namespace regard::cli
