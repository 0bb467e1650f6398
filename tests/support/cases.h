// How many random cases a test tries. The environment variable REGARD_CASES scales them all: script/check runs a tenth
// under the sanitizers, script/nightly ten times as many.
//
//     for (int i = 0; i < cases(200); ++i) { … }
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace regard {

inline int cases(int usual) {
  static const double scale = [] {
    const char* text = std::getenv("REGARD_CASES");
    const double value = text != nullptr ? std::atof(text) : 1.0;
    return std::isfinite(value) && value > 0 ? value : 1.0;
  }();
  return std::max(1, static_cast<int>(std::lround(usual * scale)));
}

}  // namespace regard
