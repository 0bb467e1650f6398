// What strangers may send, each kind of it as a function of bytes. libFuzzer calls these functions (script/nightly
// fuzz), and so does test_fuzz, with the corpus and what chance makes of it.
//
//     void fuzz_line(std::string_view bytes) { … }                  // must neither crash nor hang, nor throw
//     const FuzzTarget line("line", fuzz_line);                     // corpus: tests/fuzz/corpus/line
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "regard/error.h"

namespace regard {

using FuzzFunction = void (*)(std::string_view bytes);

struct FuzzTarget {
  FuzzTarget(const char* its_name, FuzzFunction its_function) : name(its_name), function(its_function) {
    all().push_back(this);
  }
  static std::vector<const FuzzTarget*>& all() {
    static std::vector<const FuzzTarget*> targets;
    return targets;
  }
  const char* name;
  FuzzFunction function;
};

// Something is true of every input: else it ends here, where the fuzzer sees it.
inline void hold(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "this does not hold: %s\n", what);
  std::abort();
}

// Calls, and takes an Error for a fair answer, if it is one line and no mistake of ours. False: there was one.
template <class Work>
bool taken(const Work& work) {
  try {
    work();
    return true;
  } catch (const Error& error) {
    hold(error.kind() != ErrorKind::kInternal, error.what());
    hold(std::string_view(error.what()).find('\n') == std::string_view::npos, error.what());  // it is one line
    return false;
  }
}

// Takes numbers off the front of the input: what is left is the text.
class Input {
 public:
  explicit Input(std::string_view bytes) : bytes_(bytes) {}
  std::size_t below(std::size_t count) {
    if (bytes_.empty() || count == 0) return 0;
    const auto byte = static_cast<unsigned char>(bytes_.front());
    bytes_.remove_prefix(1);
    return byte % count;
  }
  std::string_view rest() const { return bytes_; }
  // Up to the next NUL, or all of it.
  std::string_view text() {
    const std::size_t end = bytes_.find('\0');
    const std::string_view found = bytes_.substr(0, end);
    bytes_.remove_prefix(end == std::string_view::npos ? bytes_.size() : end + 1);
    return found;
  }

 private:
  std::string_view bytes_;
};

}  // namespace regard
