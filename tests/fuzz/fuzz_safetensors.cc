// Named tensors in a file.
#include <algorithm>

#include "fuzz/target.h"
#include "io/safetensors.h"
#include "support/damage.h"

namespace regard {
namespace {

void fuzz_safetensors(std::string_view bytes) {
  taken([&] {
    const Safetensors file = Safetensors::parse(std::string(bytes), "this");
    std::size_t all = 0;
    for (const FileTensor& each : file.tensors()) {
      hold(file.find(each.name) == &each, "a tensor is found");
      to_text(each);
      all += each.bytes.size();
      for (const std::byte byte : each.bytes) all += static_cast<std::size_t>(byte) * 0;  // they are there
      taken([&] { tensor_of(each); });
      taken([&] { bytes_of(each); });
      taken([&] { integers_of(each); });
    }
    hold(all <= bytes.size(), "tensors are part of the file");
    std::string again = safetensors_header({file.metadata().begin(), file.metadata().end()}, file.tensors());
    for (const FileTensor& each : file.tensors()) {
      again.append(reinterpret_cast<const char*>(each.bytes.data()), each.bytes.size());
    }
    const Safetensors second = Safetensors::parse(again, "what was written");
    hold(second.tensors().size() == file.tensors().size() && second.metadata() == file.metadata(),
         "what is written reads as the same");
  });
  format_of(bytes);
  taken([&] { parse_sealed(sealed_anew(std::string(bytes)), "this", {.name = "regard-model"}); });
}

const FuzzTarget target("safetensors", fuzz_safetensors);

}  // namespace
}  // namespace regard
