// The sizes of a tensor, outermost first. Any size may be 0.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "regard/error.h"  // what all of them throw
#include "regard/export.h"

namespace regard {

inline constexpr int kMaxRank = 6;

class REGARD_API Shape {
 public:
  Shape() = default;  // a single number
  Shape(std::initializer_list<std::int64_t> sizes);

  int rank() const { return rank_; }
  std::int64_t operator[](int dimension) const { return sizes_[index(dimension)]; }  // −1 is the last
  std::int64_t& operator[](int dimension) { return sizes_[index(dimension)]; }
  std::int64_t size() const;  // the product; throws kLimit if it does not fit

  // All but the last size multiplied, and the last: a tensor seen as rows.
  std::int64_t row_count() const;
  std::int64_t row_width() const { return rank_ == 0 ? 1 : sizes_[rank_ - 1]; }

  Shape without(int dimension) const;
  Shape with(int dimension, std::int64_t size) const;
  Shape plus(std::int64_t size) const;  // one more dimension at the end
  bool operator==(const Shape& other) const;

  int index(int dimension) const {  // −rank…rank−1 to 0…rank−1; throws otherwise
    if (dimension < -rank_ || dimension >= rank_) [[unlikely]]
      wrong_dimension(dimension);
    return dimension < 0 ? dimension + rank_ : dimension;
  }

 private:
  [[noreturn]] void wrong_dimension(int dimension) const;

  int rank_ = 0;
  std::int64_t sizes_[kMaxRank] = {};
};

REGARD_API std::string to_text(const Shape& shape);  // "[2, 17, 64]"

// The shape both are spread to: sizes are matched from the right, 1 fits anything. `what` names the caller in the
// error.
REGARD_API Shape broadcast(const Shape& a, const Shape& b, const char* what);

}  // namespace regard
