// Files of text: plain or gzip, lines, tables, JSON lines. The first byte says which.
#include <sys/mman.h>
#include <unistd.h>

#include "base/utf8.h"
#include "data/lines.h"
#include "data/segment.h"
#include "fuzz/target.h"
#include "io/json.h"

namespace regard {
namespace {

// A file in memory.
class Scrap {
 public:
  explicit Scrap(std::string_view bytes) : handle_(memfd_create("scrap", 0)) {
    hold(write(handle_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "memory is there");
  }
  ~Scrap() { close(handle_); }
  Scrap(const Scrap&) = delete;
  Scrap& operator=(const Scrap&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(handle_); }

 private:
  int handle_;
};

void fuzz_lines(std::string_view bytes) {
  Input input(bytes);
  const std::size_t which = input.below(4);
  const Scrap scrap(input.rest());
  constexpr std::size_t kLongest = 100;
  taken([&] {
    if (which == 0) {
      LineReader reader(scrap.path(), kLongest);
      LinePosition middle;
      std::string seen;
      for (LineReader::Line line; reader.next(line);) {
        hold(line.text.size() <= kLongest, "a line is bounded");
        if (line.number == 3) middle = reader.position();
        if (line.number == 4) seen = line.text;
      }
      if (middle.line == 0 || !reader.can_seek()) return;
      reader.seek(middle);
      LineReader::Line line;
      if (reader.next(line)) hold(line.number == 4 && line.text == seen, "a line is found again");
      return;
    }
    if (which == 3) {
      for (const UserWord& each : read_user_words(scrap.path())) hold(utf8::valid(each.word), "a word is UTF-8");
      return;
    }
    PairReader reader(
        {.source = scrap.path(), .format = which == 1 ? PairFormat::kTable : PairFormat::kJson, .longest = kLongest});
    for (LinePair pair; reader.next(pair);) {
      hold(utf8::valid(pair.source) && utf8::valid(pair.target) && !pair.source.empty() && !pair.target.empty(),
           "pairs are whole");
    }
    reader.report().text();
  });
}

const FuzzTarget target("lines", fuzz_lines);

}  // namespace
}  // namespace regard
