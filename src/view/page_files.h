// The script and the style of the HTML page, as they were when the program was built (src/view/page).
#pragma once

namespace regard {

extern const char* const kPageScript;
extern const char* const kPageStyle;

}  // namespace regard
