// Which Regard this is.
#pragma once

#include "regard/export.h"

namespace regard {

REGARD_API const char* version();  // of the library that runs: "0.1.0"

}  // namespace regard
