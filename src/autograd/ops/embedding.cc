// Rows of a table. Backward: the gradients of all places where a row was used are added up in the order of the places;
// rows that were not used are neither read nor written.
#include <algorithm>

#include "autograd/by_type.h"
#include "base/check.h"
#include "base/float_mode.h"
#include "base/pool.h"
#include "kernels/chunks.h"
#include "regard/autograd/ops.h"

namespace regard {

Var embedding(Var table, const Tensor& ids) {
  const FloatMode mode;
  check(table.shape().rank() == 2, "embedding: the table is ", table.shape(), ", expected [count, width]");
  check(ids.dtype() == DType::kI32, "embedding: the ids are ", ids, ", expected i32");
  Tape& tape = table.tape();
  const std::int64_t count = table[0], places = ids.size();
  const auto width = static_cast<std::size_t>(table[1]);
  // The ids are copied: the caller may reuse theirs before the backward pass.
  const Tensor kept = tape.make(ids.shape(), DType::kI32);
  kept.copy_from(ids);
  const std::int32_t* id = kept.data<std::int32_t>();
  for (std::int64_t i = 0; i < places; ++i) {
    check(id[i] >= 0 && id[i] < count, "embedding: id ", id[i], " at place ", i, ", expected 0 to ", count - 1);
  }
  const Tensor y = tape.make(ids.shape().plus(table[1]), table.dtype());
  by_type(y.dtype(), [&]<class T>() {
    const T* from = table.value().data<T>();
    T* to = y.data<T>();
    in_row_chunks(static_cast<std::size_t>(places), width, [&](std::size_t begin, std::size_t rows) {
      for (std::size_t i = begin; i < begin + rows; ++i) {
        std::copy_n(from + static_cast<std::size_t>(id[i]) * width, width, to + i * width);
      }
    });
  });
  return tape.record(Op::embedding, y, {table}, [=, &tape](const Tensor& dy) {
    const std::int32_t* place = kept.data<std::int32_t>();
    const Target to = tape.target_rows(table, {place, static_cast<std::size_t>(places)});
    by_type(dy.dtype(), [&]<class T>() {
      T* gradient = to.gradient.data<T>();
      const T* up = dy.data<T>();
      constexpr std::size_t kColumns = 64;  // a block of columns is one item: every element has one adder
      parallel((width + kColumns - 1) / kColumns, [&](std::size_t block) {
        const std::size_t begin = block * kColumns, end = std::min(begin + kColumns, width);
        for (std::int64_t i = 0; i < places; ++i) {
          T* row = gradient + static_cast<std::size_t>(place[i]) * width;
          const T* source = up + static_cast<std::size_t>(i) * width;
          for (std::size_t c = begin; c < end; ++c) row[c] += source[c];
        }
      });
    });
  });
}

}  // namespace regard
