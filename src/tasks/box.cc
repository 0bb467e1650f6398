#include "tasks/box.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/check.h"
#include "base/utf8.h"
#include "data/unicode.h"

namespace regard {
namespace {

namespace fs = std::filesystem;

}  // namespace

std::vector<std::string> boxed_model_places(std::string_view direction) {
  const std::string name = std::string(direction) + ".model";
  std::vector<std::string> places;
  if (const char* folder = std::getenv("REGARD_MODELS"); folder != nullptr && *folder != '\0') {
    return {(fs::path(folder) / name).string()};
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path above = program.parent_path().parent_path();
  if (program.is_absolute()) {
    places.push_back((above / "share" / "regard" / "models" / name).string());
    places.push_back((above.parent_path() / "models" / name).string());  // build/release/regard
  }
  return places;
}

std::string boxed_model(std::string_view direction) {
  std::string tried;
  for (const std::string& place : boxed_model_places(direction)) {
    if (access(place.c_str(), R_OK) == 0) return place;
    tried += (tried.empty() ? "" : ", ") + place;
  }
  fail(ErrorKind::kFile, "there is no model for ", direction, " in the box (looked for ", tried,
       "); name one with -m MODEL");
}

std::string_view direction_of(std::string_view line) {
  for (std::size_t at = 0; at < line.size();) {
    const utf8::Letter letter = utf8::read(line, at);
    if (letter.valid && letter_class(letter.code) == LetterClass::kWideWord) return "zh-en";
    at += letter.length;
  }
  return "en-zh";
}

}  // namespace regard
