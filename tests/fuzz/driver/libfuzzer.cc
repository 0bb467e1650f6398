// The fuzzer: REGARD_FUZZ_TARGET=html regard_fuzz [options of libFuzzer] [folders of the corpus]
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "fuzz/target.h"

namespace {

const regard::FuzzTarget* find_target() {
  const char* const name = std::getenv("REGARD_FUZZ_TARGET");
  for (const regard::FuzzTarget* each : regard::FuzzTarget::all()) {
    if (name != nullptr && std::strcmp(each->name, name) == 0) return each;
  }
  std::fprintf(stderr, "REGARD_FUZZ_TARGET names one of:");
  for (const regard::FuzzTarget* each : regard::FuzzTarget::all()) std::fprintf(stderr, " %s", each->name);
  std::fprintf(stderr, "\n");
  std::exit(2);
}

const regard::FuzzTarget& chosen() {
  static const regard::FuzzTarget* const target = find_target();
  return *target;
}

}  // namespace

// What a target makes once (a server, models) takes longer than an input may.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  chosen().function("");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen().function({reinterpret_cast<const char*>(data), size});
  return 0;
}
