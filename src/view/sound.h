// What a picture shows of a sound, beside its frames: how far the wave reaches, and its spectrum, both over the time of
// the frames.
#pragma once

#include <cstdint>
#include <vector>

#include "view/trace.h"

namespace regard {

struct Seconds {
  double first = 0, length = 0;
};
Seconds time_of(const TraceAxis& axis);  // of all its frames; a step that is no number counts as one second

// The least and the largest sample of each of `points` equal parts of that time, at most −1 … 1: what was loud stays
// visible however short it was. Empty if there is no sound.
struct Extent {
  double low = 0, high = 0;
};
std::vector<Extent> wave_of(const TraceAxis& axis, std::size_t points);

// From 0 to 1, high bands first: [bands, times]. Not defined if there is none. What is not finite stays so.
Tensor spectrum_of(const TraceAxis& axis);

}  // namespace regard
