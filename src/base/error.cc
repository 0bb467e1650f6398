#include "regard/error.h"

namespace regard {
namespace {

// Texts quote what strangers wrote: a line end in it would forge a second line of a log, and an escape what a terminal
// shows.
std::string one_line(const std::string& text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      out += letter;
    }
  }
  return out;
}

}  // namespace

Error::Error(ErrorKind kind, const std::string& text) : std::runtime_error(one_line(text)), kind_(kind) {}
Error::~Error() = default;

}  // namespace regard
