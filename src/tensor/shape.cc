#include "regard/tensor/shape.h"

#include <algorithm>

#include "base/check.h"

namespace regard {
namespace {

std::int64_t product(const std::int64_t* sizes, int count) {
  std::int64_t result = 1;
  bool zero = false, overflow = false;
  for (int i = 0; i < count; ++i) {
    zero |= sizes[i] == 0;
    overflow |= __builtin_mul_overflow(result, sizes[i], &result);
  }
  if (zero) return 0;
  if (overflow) fail(ErrorKind::kLimit, "a tensor of more than 2⁶³ elements");
  return result;
}

}  // namespace

Shape::Shape(std::initializer_list<std::int64_t> sizes) : rank_(static_cast<int>(sizes.size())) {
  check(sizes.size() <= kMaxRank, "a shape has at most ", kMaxRank, " dimensions, got ", sizes.size());
  std::copy(sizes.begin(), sizes.end(), sizes_);
  for (std::int64_t size : sizes) check(size >= 0, "a shape with a negative size: ", *this);
}

void Shape::wrong_dimension(int dimension) const {
  fail(ErrorKind::kInput, "dimension ", dimension, " of a shape of rank ", rank_);
}

std::int64_t Shape::size() const { return product(sizes_, rank_); }
std::int64_t Shape::row_count() const { return product(sizes_, std::max(0, rank_ - 1)); }

Shape Shape::without(int dimension) const {
  const int gone = index(dimension);
  Shape result;
  for (int i = 0; i < rank_; ++i) {
    if (i != gone) result.sizes_[result.rank_++] = sizes_[i];
  }
  return result;
}

Shape Shape::with(int dimension, std::int64_t size) const {
  check(size >= 0, "a shape with a negative size: ", size);
  Shape result = *this;
  result[dimension] = size;
  return result;
}

Shape Shape::plus(std::int64_t size) const {
  check(rank_ < kMaxRank, "a shape has at most ", kMaxRank, " dimensions");
  check(size >= 0, "a shape with a negative size: ", size);
  Shape result = *this;
  result.sizes_[result.rank_++] = size;
  return result;
}

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ && std::equal(sizes_, sizes_ + rank_, other.sizes_);
}

std::string to_text(const Shape& shape) {
  std::string out = "[";
  for (int i = 0; i < shape.rank(); ++i) out += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return out + "]";
}

Shape broadcast(const Shape& a, const Shape& b, const char* what) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape result = longer;
  for (int i = 1; i <= shorter.rank(); ++i) {
    const std::int64_t mine = longer[-i], theirs = shorter[-i];
    check(mine == theirs || mine == 1 || theirs == 1, what, ": shapes ", a, " and ", b, " do not fit (dimension ",
          result.rank() - i, ": ", longer[-i], " and ", shorter[-i], "; expected equal sizes or 1)");
    result[-i] = mine == 1 ? theirs : mine;
  }
  return result;
}

}  // namespace regard
