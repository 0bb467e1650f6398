// Where the sources and what was built lie. Functions and no macros: objects that know no folder are the same in every
// clone, so that a compiler cache serves them all.
#pragma once

#include <string>

namespace regard {

std::string source_path(const std::string& rest);  // "/docs/trace.md": behind the folder of the repository
std::string build_path(const std::string& rest);   // "/regard": behind the folder of the build

}  // namespace regard
