// The commit, which cmake/Version.cmake hands to this file alone.
#include "cli/command.h"

namespace regard::cli {

const char* commit() { return REGARD_COMMIT; }

}  // namespace regard::cli
