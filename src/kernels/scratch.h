// Memory that a thread keeps between calls, so that kernels take nothing from the heap once they have run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#include "regard/tensor/shape.h"

namespace regard {

// One buffer; what it held is lost when it grows.
//
//     static thread_local Scratch scratch;
//     float* sums = scratch.reserve(count);
class Scratch {
 public:
  float* reserve(std::size_t floats) {
    if (floats > size_) {
      memory_.reset();
      size_ = 0;
      const std::size_t bytes = (floats * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
      memory_.reset(static_cast<float*>(std::aligned_alloc(kAlignment, bytes)));
      if (memory_ == nullptr) throw std::bad_alloc();
      size_ = bytes / sizeof(float);
    }
    return memory_.get();
  }

 private:
  static constexpr std::size_t kAlignment = 4096;
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };
  std::unique_ptr<float, Free> memory_;
  std::size_t size_ = 0;
};

// A list with room for the dimensions of a tensor.
template <class T>
class ShortList {
 public:
  void push_back(const T& value) { all_[count_++] = value; }
  void pop_back() { --count_; }
  void erase(std::size_t index) {
    for (std::size_t i = index + 1; i < count_; ++i) all_[i - 1] = all_[i];
    --count_;
  }
  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }
  T& back() { return all_[count_ - 1]; }
  const T& operator[](std::size_t index) const { return all_[index]; }
  T& operator[](std::size_t index) { return all_[index]; }
  const T* begin() const { return all_.data(); }
  const T* end() const { return all_.data() + count_; }

 private:
  std::array<T, kMaxRank + 2> all_;  // only the first count_ are ever read
  std::size_t count_ = 0;
};

}  // namespace regard
