// What is said on the standard error beside the results:
//
//     note("regard: {}:{}: {}\n", name, number, what);
//
// fmt::print throws if it cannot write. A full disk behind `2> log`, or a terminal that is gone, is no reason to end.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace regard::cli {

template <class... Parts>
void note(fmt::format_string<Parts...> form, Parts&&... parts) {
  const std::string line = fmt::format(form, std::forward<Parts>(parts)...);
  [[maybe_unused]] const std::size_t written = std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace regard::cli
