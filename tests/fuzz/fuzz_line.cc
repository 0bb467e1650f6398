// The line that names a mechanism.
#include "attention/mechanism.h"
#include "fuzz/target.h"

namespace regard {
namespace {

void fuzz_line(std::string_view bytes) {
  taken([&] {
    const Line line = parse_line(bytes);
    const std::string text = to_text(line);
    hold(parse_line(text) == line, "a line that is written out means the same");
    const Mechanism mechanism(bytes);
    hold(mechanism.text() == text, "a mechanism has the text of its line");
    taken([&] { mechanism.learned({.width = 8, .values = 8, .query_token = 8, .key_token = 8}); });
  });
}

const FuzzTarget target("line", fuzz_line);

}  // namespace
}  // namespace regard
