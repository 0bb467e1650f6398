// A tensor: memory, a shape and strides. Copies share the memory; `clone` does not. There is no mathematics here.
//
//     Tensor a = Tensor::zeros({2, 3});
//     a.data<float>()[5] = 1;
//     Tensor row = a.slice(0, 1, 2);           // a view: [1, 3]
//
// Memory comes from the heap, shared by all views of it, or from an Arena, valid until the arena is reset: reading it
// later throws, it never shows stale numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "regard/export.h"
#include "regard/tensor/dtype.h"
#include "regard/tensor/shape.h"

namespace regard {

class Arena;

// Says whether memory from an arena is still valid. Never freed, so a tensor that outlives its arena can still ask.
struct ArenaEpoch {
  std::uint64_t now = 1;
};

class REGARD_API Tensor {
 public:
  Tensor() = default;  // no memory; defined() is false
  static Tensor empty(const Shape& shape, DType type = DType::kF32);
  static Tensor zeros(const Shape& shape, DType type = DType::kF32);
  static Tensor empty(Arena& arena, const Shape& shape, DType type = DType::kF32);
  template <class T>
  static Tensor of(const Shape& shape, std::initializer_list<T> values);
  // Memory that somebody else owns and keeps for as long as the tensor and its views live.
  static Tensor borrow(void* data, const Shape& shape, DType type);

  Tensor(const Tensor& other);
  Tensor(Tensor&& other) noexcept { take(other); }
  Tensor& operator=(const Tensor& other) { return *this = Tensor(other); }
  Tensor& operator=(Tensor&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }
  ~Tensor() { release(); }

  bool defined() const { return data_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  std::int64_t operator[](int dimension) const { return shape_[dimension]; }
  std::int64_t size() const { return size_; }
  std::size_t bytes() const { return static_cast<std::size_t>(size_) * bytes_of(type_); }
  DType dtype() const { return type_; }
  std::int64_t stride(int dimension) const { return strides_[shape_.index(dimension)]; }
  bool is_dense() const { return dense_; }  // rows one after another, no gaps

  // The first element. Throws if the tensor holds another type, or if its step has ended.
  template <class T>
  T* data() const {
    if (type_ != kDTypeOf<T>) [[unlikely]]
      wrong_type(kDTypeOf<T>);
    return reinterpret_cast<T*>(raw());
  }
  std::byte* raw() const {
    if (epoch_ != nullptr && epoch_->now != made_in_) [[unlikely]]
      stale();
    return data_;
  }
  // The value of a tensor with one element.
  double item() const;

  // Views of the same memory.
  Tensor slice(int dimension, std::int64_t begin, std::int64_t end) const;
  Tensor transpose(int a, int b) const;
  Tensor expand(const Shape& shape) const;   // sizes of 1 are repeated with stride 0
  Tensor reshape(const Shape& shape) const;  // of a dense tensor

  Tensor clone() const;                        // dense, on the heap
  Tensor dense(Arena& arena) const;            // itself if dense, else a copy in the arena
  void copy_from(const Tensor& source) const;  // same shape and type, any strides
  Tensor to(DType type) const;  // a dense copy on the heap in another type (f32, f64 and bf16 among each other)

 private:
  struct Storage;

  void set_shape(const Shape& shape);
  void take(Tensor& other) noexcept;  // the other becomes undefined
  void release() {
    if (storage_ != nullptr) [[unlikely]]  // most tensors are an arena's
      let_go();
  }
  void let_go();
  [[noreturn]] void stale() const;
  [[noreturn]] void wrong_type(DType read_as) const;
  [[noreturn]] static void wrong_count(const Shape& shape, std::size_t values);

  std::byte* data_ = nullptr;
  Storage* storage_ = nullptr;
  const ArenaEpoch* epoch_ = nullptr;
  std::uint64_t made_in_ = 0;
  std::int64_t size_ = 0;
  Shape shape_;
  std::int64_t strides_[kMaxRank] = {};
  DType type_ = DType::kF32;
  bool dense_ = true;
};

inline void Tensor::take(Tensor& other) noexcept {
  data_ = other.data_;
  epoch_ = other.epoch_;
  made_in_ = other.made_in_;
  size_ = other.size_;
  shape_ = other.shape_;
  std::copy(other.strides_, other.strides_ + kMaxRank, strides_);
  type_ = other.type_;
  dense_ = other.dense_;
  storage_ = other.storage_;
  other.storage_ = nullptr;
  other.data_ = nullptr;
  other.shape_ = Shape();
  other.size_ = 0;
}

REGARD_API std::string to_text(const Tensor& tensor);  // "f32 [2, 17, 64]"

template <class T>
Tensor Tensor::of(const Shape& shape, std::initializer_list<T> values) {
  if (shape.size() != static_cast<std::int64_t>(values.size())) wrong_count(shape, values.size());
  Tensor result = empty(shape, kDTypeOf<T>);
  std::copy(values.begin(), values.end(), result.data<T>());
  return result;
}

}  // namespace regard
