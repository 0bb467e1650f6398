// The files of the page of `regard serve`, as they were when the program was built (src/serve/page).
#pragma once

#include <span>

#include "serve/pages.h"

namespace regard::serve {

std::span<const Page> page_files();

}  // namespace regard::serve
