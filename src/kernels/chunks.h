// Work on long buffers in chunks: small ones in the calling thread, large ones by all threads.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/float_mode.h"
#include "base/pool.h"

namespace regard {

// work(begin, count) for pieces of [0, n) that begin at multiples of `chunk`.
template <class Work>
void in_chunks(std::size_t n, std::size_t chunk, Work&& work) {
  const FloatMode mode;
  if (n <= chunk) {
    if (n > 0) work(std::size_t{0}, n);
    return;
  }
  parallel((n + chunk - 1) / chunk, [&](std::size_t item) {
    const std::size_t begin = item * chunk;
    work(begin, std::min(chunk, n - begin));
  });
}

// work(row) for every row of `width` elements, as many rows at a time as pay for a thread.
template <class Work>
void for_rows(std::size_t count, std::size_t width, std::size_t elements_an_item, Work&& work) {
  in_chunks(count, elements_an_item / (width + 1) + 1, [&](std::size_t begin, std::size_t rows) {
    for (std::size_t i = begin; i < begin + rows; ++i) work(i);
  });
}

}  // namespace regard
