// How kernels share work out to threads: small work stays in the calling thread, large work is cut into pieces whose
// number depends on the sizes alone.
#pragma once

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstddef>

#include "base/float_mode.h"
#include "base/pool.h"
#include "kernels/views.h"

namespace regard {

// Fewer elements than this are not worth waking a thread.
inline constexpr std::size_t kSmallWork = 16384;

// How a kernel touches its data. Results of 32 MB and more are gone from the caches before anybody reads them: they are
// written past the caches, which saves reading what is about to be overwritten (64 MB: 9.9 ms and 6.6; but with 16 MB
// the writer gains 0.3 ms and the next reader loses 0.45), unless y was just read. Inputs as large are fetched ahead,
// which the processor does by itself only within a page (tanh of 64 MB: 9.7 ms and 6.7).
enum class Path { kCached, kAhead, kStreamed };

inline Path path_for(std::size_t elements, bool result_was_read) {
  return elements < (8u << 20) ? Path::kCached : result_was_read ? Path::kAhead : Path::kStreamed;
}

// To be called by the thread that wrote, before another one is told that it is done.
inline void finish_stores(Path path) {
  if (path == Path::kStreamed) hwy::FlushStream();
}

// What a thread takes at a time: few microseconds of work, or as much as makes the first fetches ahead cheap.
inline std::size_t chunk_size(std::size_t elements) {
  return path_for(elements, false) == Path::kCached ? 8192 : 65536;
}

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
  const std::size_t chunk = n <= kSmallWork ? kSmallWork : chunk_size(n);
  for_each_item((n + chunk - 1) / chunk, n,
                [&](std::size_t item) { work(item * chunk, std::min(chunk, n - item * chunk)); });
}

template <class T>
RowsOf<T> some_rows(RowsOf<T> all, std::size_t begin, std::size_t count) {
  return {all.row(begin), count, all.width, all.stride};
}

// work(begin, count) for pieces of the rows.
template <class Work>
void in_row_chunks(std::size_t rows, std::size_t width, Work&& work) {
  const std::size_t each = std::max<std::size_t>(1, chunk_size(rows * width) / std::max<std::size_t>(1, width));
  for_each_item((rows + each - 1) / each, rows * width,
                [&](std::size_t item) { work(item * each, std::min(each, rows - item * each)); });
}

}  // namespace regard
