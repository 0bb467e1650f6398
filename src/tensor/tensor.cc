#include "regard/tensor/tensor.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "tensor/arena.h"

namespace regard {
namespace {

// Calls visit(offset in a, offset in b) for every run of the last dimension, offsets in elements.
template <class Visit>
void for_each_row(const Shape& shape, const std::int64_t* a, const std::int64_t* b, Visit visit) {
  const int outer = std::max(0, shape.rank() - 1);
  std::int64_t place[kMaxRank] = {};
  if (shape.size() == 0) return;
  for (;;) {
    std::int64_t at_a = 0, at_b = 0;
    for (int i = 0; i < outer; ++i) {
      at_a += place[i] * a[i];
      at_b += place[i] * b[i];
    }
    visit(at_a, at_b);
    int i = outer - 1;
    for (; i >= 0 && ++place[i] == shape[i]; --i) place[i] = 0;
    if (i < 0) return;
  }
}

template <class T>
double as_number(T value) {
  return static_cast<double>(value);
}
double as_number(BF16 value) { return static_cast<float>(value); }

template <class From, class To>
void convert(const From* from, To* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<To, BF16>) {
      to[i] = BF16(static_cast<float>(from[i]));
    } else {
      to[i] = static_cast<To>(as_number(from[i]));
    }
  }
}

}  // namespace

struct Tensor::Storage {
  std::atomic<std::int64_t> references{1};
  std::byte* data;
  std::size_t bytes;
  std::shared_ptr<Budget> budget;
};

Tensor::Tensor(const Tensor& other)
    : data_(other.data_),
      storage_(other.storage_),
      epoch_(other.epoch_),
      made_in_(other.made_in_),
      size_(other.size_),
      shape_(other.shape_),
      type_(other.type_),
      dense_(other.dense_) {
  std::copy(other.strides_, other.strides_ + kMaxRank, strides_);
  if (storage_ != nullptr) storage_->references.fetch_add(1, std::memory_order_relaxed);
}

void Tensor::let_go() {
  if (storage_->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  free_bytes(storage_->data, storage_->bytes, storage_->budget.get());
  delete storage_;
}

void Tensor::stale() const {
  fail(ErrorKind::kInternal, "tensor ", shape_,
       " was read after the step that made it had ended; clone() what must last");
}

void Tensor::wrong_type(DType read_as) const { fail(ErrorKind::kInput, "a tensor of ", type_, " read as ", read_as); }

void Tensor::wrong_count(const Shape& shape, std::size_t values) {
  fail(ErrorKind::kInput, "a tensor of shape ", shape, " from ", values, " values");
}

void Tensor::set_shape(const Shape& shape) {
  shape_ = shape;
  size_ = shape.size();
  std::uint64_t step = 1;  // may wrap around where there is nothing to step over: [2⁶², 0, 4]
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides_[i] = static_cast<std::int64_t>(step);
    step *= static_cast<std::uint64_t>(std::max<std::int64_t>(shape[i], 1));
  }
  dense_ = true;
}

Tensor Tensor::empty(const Shape& shape, DType type) {
  Tensor result;
  result.type_ = type;
  result.set_shape(shape);
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<std::size_t>(result.size_), bytes_of(type), &bytes)) {
    fail(ErrorKind::kLimit, "out of memory: a tensor of shape ", shape);
  }
  auto storage = std::make_unique<Storage>();
  storage->budget = current_budget();
  storage->data = allocate_bytes(bytes, storage->budget.get(), "a tensor");
  storage->bytes = bytes;
  result.data_ = storage->data;
  result.storage_ = storage.release();
  return result;
}

Tensor Tensor::zeros(const Shape& shape, DType type) {
  Tensor result = empty(shape, type);
  std::memset(result.data_, 0, result.bytes());
  return result;
}

Tensor Tensor::empty(Arena& arena, const Shape& shape, DType type) {
  Tensor result;
  result.type_ = type;
  result.set_shape(shape);
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<std::size_t>(result.size_), bytes_of(type), &bytes)) {
    fail(ErrorKind::kLimit, "out of memory: a tensor of shape ", shape);
  }
  result.data_ = static_cast<std::byte*>(arena.allocate(bytes));
  result.epoch_ = arena.epoch();
  result.made_in_ = result.epoch_->now;
  return result;
}

Tensor Tensor::borrow(void* data, const Shape& shape, DType type) {
  Tensor result;
  result.type_ = type;
  result.set_shape(shape);
  result.data_ = static_cast<std::byte*>(data);
  return result;
}

double Tensor::item() const {
  check(size_ == 1, "item of a tensor of shape ", shape_, ": expected one element, got ", size_);
  switch (type_) {
    case DType::kF32:
      return *data<float>();
    case DType::kF64:
      return *data<double>();
    case DType::kBF16:
      return static_cast<float>(*data<BF16>());
    case DType::kI8:
      return *data<std::int8_t>();
    case DType::kI32:
      return *data<std::int32_t>();
  }
  return 0;
}

Tensor Tensor::slice(int dimension, std::int64_t begin, std::int64_t end) const {
  const int d = shape_.index(dimension);
  check(begin >= 0 && begin <= end && end <= shape_[d], "slice ", begin, "…", end, " of dimension ", d, " of ", shape_);
  Tensor view = *this;
  if (size_ != 0)
    view.data_ += static_cast<std::ptrdiff_t>(begin * strides_[d]) * static_cast<std::ptrdiff_t>(bytes_of(type_));
  view.shape_[d] = end - begin;
  view.size_ = view.shape_.size();
  view.dense_ = dense_ && (d == 0 || end - begin == shape_[d]);
  return view;
}

Tensor Tensor::transpose(int a, int b) const {
  const int i = shape_.index(a), j = shape_.index(b);
  Tensor view = *this;
  std::swap(view.shape_[i], view.shape_[j]);
  std::swap(view.strides_[i], view.strides_[j]);
  view.dense_ = dense_ && (i == j || size_ <= 1);
  return view;
}

Tensor Tensor::expand(const Shape& shape) const {
  check(shape.rank() >= rank(), "expand ", shape_, " to ", shape, ": expected at least as many dimensions");
  Tensor view = *this;
  view.set_shape(shape);
  const int more = shape.rank() - rank();
  for (int i = 0; i < shape.rank(); ++i) {
    if (i < more) {
      view.strides_[i] = 0;
    } else {
      const std::int64_t mine = shape_[i - more];
      check(mine == shape[i] || mine == 1, "expand ", shape_, " to ", shape, ": dimension ", i, " is ", mine,
            ", expected 1 or ", shape[i]);
      view.strides_[i] = mine == shape[i] ? strides_[i - more] : 0;
    }
  }
  view.dense_ = dense_ && view.size_ == size_;
  return view;
}

Tensor Tensor::reshape(const Shape& shape) const {
  check(shape.size() == size_, "reshape ", shape_, " to ", shape, ": ", size_, " elements, expected ", shape.size());
  check(dense_, "reshape of a view that is not dense: ", shape_);
  Tensor view = *this;
  view.set_shape(shape);
  return view;
}

void Tensor::copy_from(const Tensor& source) const {
  check(source.shape_ == shape_ && source.type_ == type_, "copy ", source, " to ", *this);
  std::byte* to = raw();
  const std::byte* from = source.raw();
  const std::size_t unit = bytes_of(type_);
  if (dense_ && source.dense_) {
    if (bytes() > 0) std::memcpy(to, from, bytes());
    return;
  }
  const int last = rank() - 1;  // a view that is not dense has at least one dimension
  const std::int64_t width = shape_[last], step_to = strides_[last], step_from = source.strides_[last];
  for_each_row(shape_, strides_, source.strides_, [&](std::int64_t at_to, std::int64_t at_from) {
    std::byte* row_to = to + at_to * static_cast<std::int64_t>(unit);
    const std::byte* row_from = from + at_from * static_cast<std::int64_t>(unit);
    if (step_to == 1 && step_from == 1) {
      std::memcpy(row_to, row_from, static_cast<std::size_t>(width) * unit);
      return;
    }
    for (std::int64_t i = 0; i < width; ++i) {
      std::memcpy(row_to + i * step_to * static_cast<std::int64_t>(unit),
                  row_from + i * step_from * static_cast<std::int64_t>(unit), unit);
    }
  });
}

Tensor Tensor::clone() const {
  Tensor copy = empty(shape_, type_);
  copy.copy_from(*this);
  return copy;
}

Tensor Tensor::dense(Arena& arena) const {
  if (dense_) return *this;
  Tensor copy = empty(arena, shape_, type_);
  copy.copy_from(*this);
  return copy;
}

Tensor Tensor::to(DType type) const {
  if (type == type_) return clone();
  const Tensor from = dense_ ? *this : clone();
  Tensor result = empty(shape_, type);
  const auto write = [&]<class From>(const From* source) {
    switch (type) {
      case DType::kF32:
        return convert(source, result.data<float>(), size_);
      case DType::kF64:
        return convert(source, result.data<double>(), size_);
      case DType::kBF16:
        return convert(source, result.data<BF16>(), size_);
      case DType::kI8:
      case DType::kI32:
        break;
    }
    fail(ErrorKind::kInput, "a tensor of ", type_, " cannot become ", type);
  };
  switch (type_) {
    case DType::kF32:
      write(from.data<float>());
      break;
    case DType::kF64:
      write(from.data<double>());
      break;
    case DType::kBF16:
      write(from.data<BF16>());
      break;
    case DType::kI8:
      write(from.data<std::int8_t>());
      break;
    case DType::kI32:
      write(from.data<std::int32_t>());
      break;
  }
  return result;
}

std::string to_text(const Tensor& tensor) { return text(tensor.dtype(), " ", tensor.shape()); }

}  // namespace regard
