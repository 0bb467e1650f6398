// Sequences of unlike length one after another, and side by side with padding as attention reads them. The backward of
// each moves the gradient as the other one moves numbers.
#include <algorithm>
#include <numeric>

#include "autograd/by_type.h"
#include "base/check.h"
#include "base/float_mode.h"
#include "kernels/chunks.h"
#include "regard/autograd/ops.h"
#include "tensor/arena.h"

namespace regard {
namespace {

struct Layout {
  const std::int32_t* lengths;
  const std::int64_t* begins;  // the first row of each
  std::int64_t items, longest, heads, width;
};

// The caller's lengths may be gone by the time of the backward pass.
Layout layout_of(Op op, Tape& tape, std::span<const std::int32_t> lengths, std::int64_t longest, std::int64_t heads,
                 std::int64_t width) {
  auto* kept = static_cast<std::int32_t*>(tape.arena().allocate(lengths.size() * sizeof(std::int32_t)));
  auto* begins = static_cast<std::int64_t*>(tape.arena().allocate(lengths.size() * sizeof(std::int64_t)));
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    check(lengths[i] >= 0 && lengths[i] <= longest, name_of(op), ": sequence ", i, " has a length of ", lengths[i],
          ", expected 0 to ", longest);
    kept[i] = lengths[i];
    begins[i] = rows;
    rows += lengths[i];
  }
  return {kept, begins, static_cast<std::int64_t>(lengths.size()), longest, heads, width};
}

std::int64_t rows_of(const Layout& layout) {
  return std::accumulate(layout.lengths, layout.lengths + layout.items, std::int64_t{0});
}

// use(a row's part of one head, where it stands in [items, heads, longest, width]; null: there is padding)
template <class T, class Use>
void for_each_place(const Layout& layout, T* rows, Use use) {
  const std::int64_t padded = layout.heads * layout.longest * layout.width;
  for_each_item(static_cast<std::size_t>(layout.items), static_cast<std::size_t>(layout.items * padded),
                [&](std::size_t item) {
                  const auto begin = static_cast<std::int64_t>(item) * padded;
                  for (std::int64_t head = 0; head < layout.heads; ++head) {
                    for (std::int64_t t = 0; t < layout.longest; ++t) {
                      T* const row = t < layout.lengths[item]
                                         ? rows + ((layout.begins[item] + t) * layout.heads + head) * layout.width
                                         : nullptr;
                      use(row, begin + (head * layout.longest + t) * layout.width);
                    }
                  }
                });
}

template <class T>
void put(const T* from, T* to, std::int64_t width, bool add) {
  if (!add) {
    std::copy_n(from, width, to);
  } else {
    for (std::int64_t c = 0; c < width; ++c) to[c] += from[c];
  }
}

void pad(const Layout& layout, const Tensor& rows, const Tensor& padded, bool add) {
  by_type(rows.dtype(), [&]<class T>() {
    T* const to = padded.data<T>();
    for_each_place(layout, static_cast<const T*>(rows.data<T>()), [&](const T* row, std::int64_t at) {
      if (row != nullptr) {
        put(row, to + at, layout.width, add);
      } else if (!add) {
        std::fill_n(to + at, layout.width, T{0});
      }
    });
  });
}

void unpad(const Layout& layout, const Tensor& padded, const Tensor& rows, bool add) {
  by_type(rows.dtype(), [&]<class T>() {
    const T* const from = padded.data<T>();
    for_each_place(layout, rows.data<T>(), [&](T* row, std::int64_t at) {
      if (row != nullptr) put(from + at, row, layout.width, add);
    });
  });
}

}  // namespace

Var pad_sequences(Var x, std::span<const std::int32_t> lengths, std::int64_t longest, std::int64_t heads) {
  const FloatMode mode;
  check(x.shape().rank() == 2, "pad_sequences: x is ", x.shape(), ", expected [rows, width]");
  check(heads >= 1 && x[1] % heads == 0, "pad_sequences: a width of ", x[1], " does not divide into ", heads, " heads");
  Tape& tape = x.tape();
  const Layout layout = layout_of(Op::pad_sequences, tape, lengths, longest, heads, x[1] / heads);
  check(rows_of(layout) == x[0], "pad_sequences: x has ", x[0], " rows, the lengths add up to ", rows_of(layout));
  const Tensor y = tape.make({layout.items, heads, longest, layout.width}, x.dtype());
  pad(layout, x.value(), y, false);
  return tape.record(Op::pad_sequences, y, {x}, [=, &tape](const Tensor& dy) {
    const Target dx = tape.target(x);
    unpad(layout, dy, dx.gradient, dx.add);
  });
}

Var unpad_sequences(Var x, std::span<const std::int32_t> lengths) {
  const FloatMode mode;
  check(x.shape().rank() == 4, "unpad_sequences: x is ", x.shape(), ", expected [items, heads, longest, width]");
  check(static_cast<std::int64_t>(lengths.size()) == x[0], "unpad_sequences: ", lengths.size(), " lengths for ", x[0],
        " items");
  Tape& tape = x.tape();
  const Layout layout = layout_of(Op::unpad_sequences, tape, lengths, x[2], x[1], x[3]);
  const Tensor y = tape.make({rows_of(layout), x[1] * x[3]}, x.dtype());
  unpad(layout, x.value(), y, false);
  return tape.record(Op::unpad_sequences, y, {x}, [=, &tape](const Tensor& dy) {
    const Target dx = tape.target(x);
    pad(layout, dy, dx.gradient, dx.add);
  });
}

}  // namespace regard
