// Files whose header is anything: up to the first NUL it is JSON, whose length is put before it; behind it are the
// numbers. So chance spends its time on what a header says and not on how long it is.
#include <cstring>

#include "fuzz/target.h"
#include "support/damage.h"
#include "view/show.h"

namespace regard {
namespace {

void fuzz_header(std::string_view bytes) {
  Input input(bytes);
  const std::string_view header = input.text();
  const std::uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  file.append(header).append(input.rest());
  file = sealed_anew(file);
  taken([&] { Safetensors::parse(file, "this"); });
  taken([&] {
    const Trace trace = Trace::parse(file, "a trace");
    const std::string written = trace.bytes();
    hold(Trace::parse(written, "what was written").bytes() == written, "what is written reads as the same");
    if (file.size() < 3000) show(trace, {}, ShowFormat::kSvg);
  });
}

const FuzzTarget target("header", fuzz_header);

}  // namespace
}  // namespace regard
