// check(condition, parts…): a user's mistake becomes a regard::Error whose text is the parts, one after another.
// The parts are put together only when the condition is false, so a check costs one branch.
//
//     check(a.size() == b.size(), "add: sizes differ: ", a.shape(), " and ", b.shape());
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <iterator>
#include <string>
#include <string_view>

#include "regard/error.h"

namespace regard {

// A type with a free function `std::string to_text(const T&)` beside it can be a part.
template <class T>
concept HasText = requires(const T& value) {
  { to_text(value) } -> std::convertible_to<std::string>;
};

template <class... Parts>
std::string text(const Parts&... parts) {
  std::string out;
  const auto append = [&out](const auto& part) {
    if constexpr (HasText<std::decay_t<decltype(part)>>) {
      out += to_text(part);
    } else {
      fmt::format_to(std::back_inserter(out), "{}", part);
    }
  };
  (append(parts), ...);
  return out;
}

template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(ErrorKind kind, const Parts&... parts) {
  throw Error(kind, text(parts...));
}

template <class... Parts>
inline void check(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    fail(ErrorKind::kInput, parts...);
}

}  // namespace regard
