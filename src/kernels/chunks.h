// How kernels share work out to threads: small work stays in the calling thread, large work is cut into pieces whose
// number depends on the sizes alone.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/float_mode.h"
#include "base/pool.h"
#include "kernels/views.h"

namespace regard {

// Fewer elements than this are not worth waking a thread.
inline constexpr std::size_t kSmallWork = 16384;

// What a thread takes at a time: input and output fit the first-level cache.
inline constexpr std::size_t kChunk = 8192;

// work(item) for every item; `elements` says how much work they are together.
template <class Work>
void for_each_item(std::size_t items, std::size_t elements, Work&& work) {
  const FloatMode mode;
  if (elements <= kSmallWork) {
    for (std::size_t item = 0; item < items; ++item) work(item);
  } else {
    parallel(items, work);
  }
}

// work(begin, count) for pieces of [0, n).
template <class Work>
void in_chunks(std::size_t n, Work&& work) {
  const FloatMode mode;
  if (n <= kSmallWork) {
    if (n > 0) work(std::size_t{0}, n);
  } else {
    parallel((n + kChunk - 1) / kChunk, [&](std::size_t item) {
      const std::size_t begin = item * kChunk;
      work(begin, std::min(kChunk, n - begin));
    });
  }
}

// work(begin, count) for pieces of the rows.
template <class Work>
void in_row_chunks(std::size_t rows, std::size_t width, Work&& work) {
  const std::size_t each = std::max<std::size_t>(1, kChunk / std::max<std::size_t>(1, width));
  for_each_item((rows + each - 1) / each, rows * width,
                [&](std::size_t item) { work(item * each, std::min(each, rows - item * each)); });
}

template <class T>
RowsOf<T> some_rows(RowsOf<T> all, std::size_t begin, std::size_t count) {
  return {all.row(begin), count, all.width, all.stride};
}

}  // namespace regard
