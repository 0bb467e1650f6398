#include "kernels/copy.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/pool.h"

namespace regard {
namespace {

struct Step {
  std::int64_t size, to, from;
};

// Dimensions of size 1 vanish, neighbours that run on in both views become one, so that the inner loops are long.
int collapse(const Shape& shape, const std::int64_t* to, const std::int64_t* from, Step* steps) {
  int count = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 1) continue;
    if (count > 0 && steps[count - 1].to == to[i] * shape[i] && steps[count - 1].from == from[i] * shape[i]) {
      steps[count - 1] = {steps[count - 1].size * shape[i], to[i], from[i]};
    } else {
      steps[count++] = {shape[i], to[i], from[i]};
    }
  }
  while (count < 2) {
    std::copy_backward(steps, steps + count, steps + count + 1);
    steps[0] = {1, 0, 0};
    ++count;
  }
  return count;
}

template <class T>
void move_run(T* to, std::int64_t to_step, const T* from, std::int64_t from_step, std::int64_t size, bool add) {
  if (to_step == 1 && from_step == 1) {
    if (!add) {
      std::memcpy(to, from, static_cast<std::size_t>(size) * sizeof(T));
    } else {
      for (std::int64_t i = 0; i < size; ++i) to[i] = static_cast<T>(to[i] + from[i]);
    }
  } else if (add) {
    for (std::int64_t i = 0; i < size; ++i) to[i * to_step] = static_cast<T>(to[i * to_step] + from[i * from_step]);
  } else {
    for (std::int64_t i = 0; i < size; ++i) to[i * to_step] = from[i * from_step];
  }
}

// The two innermost dimensions, in blocks so that a transposition stays within a few cache lines on either side.
template <class T>
void move_plane(const Step& outer, const Step& inner, T* to, const T* from, bool add) {
  constexpr std::int64_t kBlock = 16;
  if ((inner.to == 1 && inner.from == 1) || outer.size == 1) {
    for (std::int64_t i = 0; i < outer.size; ++i) {
      move_run(to + i * outer.to, inner.to, from + i * outer.from, inner.from, inner.size, add);
    }
    return;
  }
  for (std::int64_t i = 0; i < outer.size; i += kBlock) {
    const std::int64_t rows = std::min(kBlock, outer.size - i);
    for (std::int64_t j = 0; j < inner.size; j += kBlock) {
      const std::int64_t columns = std::min(kBlock, inner.size - j);
      for (std::int64_t r = i; r < i + rows; ++r) {
        move_run(to + r * outer.to + j * inner.to, inner.to, from + r * outer.from + j * inner.from, inner.from,
                 columns, add);
      }
    }
  }
}

constexpr std::int64_t kElementsAnItem = 1 << 15;  // below this a second thread does not pay

}  // namespace

template <class T>
void move_strided(const Shape& shape, T* to, const std::int64_t* to_strides, const T* from,
                  const std::int64_t* from_strides, bool add) {
  const std::int64_t size = shape.size();
  if (size == 0) return;
  Step steps[kMaxRank + 2];
  int count = collapse(shape, to_strides, from_strides, steps);
  if (count == 2 && size > kElementsAnItem && steps[0].size > 1) {  // split the rows of a single plane
    const std::int64_t rows = std::max<std::int64_t>(16, kElementsAnItem / steps[1].size / 16 * 16);
    const std::int64_t items = (steps[0].size + rows - 1) / rows;
    parallel(static_cast<std::size_t>(items), [&](std::size_t item) {
      const std::int64_t first = static_cast<std::int64_t>(item) * rows;
      const Step part = {std::min(rows, steps[0].size - first), steps[0].to, steps[0].from};
      move_plane(part, steps[1], to + first * steps[0].to, from + first * steps[0].from, add);
    });
    return;
  }
  const int outer = count - 2;
  std::int64_t planes = 1;
  for (int i = 0; i < outer; ++i) planes *= steps[i].size;
  const std::int64_t group = std::max<std::int64_t>(1, kElementsAnItem / (steps[outer].size * steps[outer + 1].size));
  parallel(static_cast<std::size_t>((planes + group - 1) / group), [&](std::size_t item) {
    const std::int64_t first = static_cast<std::int64_t>(item) * group;
    for (std::int64_t plane = first; plane < std::min(first + group, planes); ++plane) {
      std::int64_t rest = plane, at_to = 0, at_from = 0;
      for (int i = outer - 1; i >= 0; --i) {
        at_to += rest % steps[i].size * steps[i].to;
        at_from += rest % steps[i].size * steps[i].from;
        rest /= steps[i].size;
      }
      move_plane(steps[outer], steps[outer + 1], to + at_to, from + at_from, add);
    }
  });
}

template void move_strided(const Shape&, float*, const std::int64_t*, const float*, const std::int64_t*, bool);
template void move_strided(const Shape&, double*, const std::int64_t*, const double*, const std::int64_t*, bool);

}  // namespace regard
