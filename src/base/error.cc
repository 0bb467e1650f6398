#include "regard/error.h"

#include <string_view>

#include "base/utf8.h"

namespace regard {
namespace {

// Texts quote what strangers wrote: a line end in it would forge a second line of a log, and an escape what a terminal
// shows.
std::string one_line(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const utf8::Letter letter = utf8::read(text, at);
    if (byte == '\n') {
      out += "\\n";
    } else if (!letter.valid || byte < 0x20 || byte == 0x7F) {
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      out += text.substr(at, letter.length);
    }
    at += letter.length;
  }
  return out;
}

}  // namespace

Error::Error(ErrorKind kind, const std::string& text) : std::runtime_error(one_line(text)), kind_(kind) {}
Error::~Error() = default;

}  // namespace regard
