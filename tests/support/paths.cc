#include "support/paths.h"

namespace regard {

std::string source_path(const std::string& rest) { return REGARD_SOURCE_DIR + rest; }
std::string build_path(const std::string& rest) { return REGARD_BINARY_DIR + rest; }

}  // namespace regard
