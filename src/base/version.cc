// The version, which cmake/Version.cmake hands to this file alone.
#include "regard/version.h"

namespace regard {

const char* version() { return REGARD_VERSION; }

}  // namespace regard
