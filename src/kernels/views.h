// What kernels work on: plain views of memory that somebody else owns.
#pragma once

#include <cstddef>

namespace regard {

// `count` rows of `width` elements; a row is contiguous, rows are `stride` elements apart.
template <class T>
struct RowsOf {
  T* data = nullptr;
  std::size_t count = 0;
  std::size_t width = 0;
  std::size_t stride = 0;

  T* row(std::size_t i) const { return data + i * stride; }
  operator RowsOf<const T>() const { return {data, count, width, stride}; }
};
using Rows = RowsOf<const float>;  // read
using Tile = RowsOf<float>;        // written

template <class T>
RowsOf<T> rows(T* data, std::size_t count, std::size_t width) {
  return {data, count, width, width};
}

// A matrix in any order: element (i, j) stands at data[i · row_stride + j · column_stride], one of the strides being 1.
template <class T>
struct MatrixOf {
  T* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t row_stride = 0;
  std::size_t column_stride = 1;

  T& at(std::size_t i, std::size_t j) const { return data[i * row_stride + j * column_stride]; }
  MatrixOf transposed() const { return {data, columns, rows, column_stride, row_stride}; }
  operator MatrixOf<const T>() const { return {data, rows, columns, row_stride, column_stride}; }
};
using Matrix = MatrixOf<const float>;

template <class T>
MatrixOf<T> matrix(T* data, std::size_t rows, std::size_t columns) {
  return {data, rows, columns, columns, 1};
}

}  // namespace regard
