// Modules: libraries that would make every start slower are linked into files of their own, which the program opens
// when it needs them. Where such a file is looked for: beside the program or the library, or in a folder regard there.
#pragma once

#include <string>
#include <vector>

namespace regard {

std::vector<std::string> module_places(const std::string& name);  // "regard_pieces.so"
std::string module_places_text(const std::string& name);          // the same for an error, separated by commas

// The symbols of that name in the files that are there and can be opened, first place first. Never closed again.
std::vector<void*> module_symbols(const std::string& name, const char* symbol);

// The first module that has the version we know; nullptr: there is none. `Module` has a member `version`.
template <class Module>
const Module* find_module(const std::string& name, const char* symbol, int version) {
  for (void* const found : module_symbols(name, symbol)) {
    const Module* const module = reinterpret_cast<const Module* (*)()>(found)();
    if (module != nullptr && module->version == version) return module;
  }
  return nullptr;
}

}  // namespace regard
