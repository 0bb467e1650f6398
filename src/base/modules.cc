#include "base/modules.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#ifndef REGARD_LIBDIR
#define REGARD_LIBDIR "lib"
#endif

namespace regard {

namespace fs = std::filesystem;

std::vector<std::string> module_places(const std::string& name) {
  std::vector<std::string> places;
  const auto add = [&](const fs::path& folder) {
    const std::string place = (folder / name).lexically_normal().string();
    if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
  };
  const auto add_around = [&](const fs::path& file) {
    if (!file.is_absolute()) return;
    const fs::path folder = file.parent_path();
    add(folder);
    add(folder / "regard");                                // beside the library
    add(folder.parent_path() / REGARD_LIBDIR / "regard");  // from bin/
    add(folder.parent_path() / "lib" / "regard");
  };
  std::error_code error;
  add_around(fs::read_symlink("/proc/self/exe", error));
  Dl_info about = {};
  if (dladdr(reinterpret_cast<const void*>(&module_places), &about) != 0 && about.dli_fname != nullptr) {
    add_around(about.dli_fname);
  }
  return places;
}

std::string module_places_text(const std::string& name) {
  std::string text;
  for (const std::string& place : module_places(name)) text += (text.empty() ? "" : ", ") + place;
  return text;
}

std::vector<void*> module_symbols(const std::string& name, const char* symbol) {
  std::vector<void*> found;
  for (const std::string& place : module_places(name)) {
    if (access(place.c_str(), R_OK) != 0) continue;
    void* const handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) continue;
    if (void* const address = dlsym(handle, symbol); address != nullptr) found.push_back(address);
  }
  return found;
}

}  // namespace regard
