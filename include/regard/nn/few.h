// A list of which there is mostly one: that one lies in the list itself and takes nothing from the heap.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace regard {

template <class T>
class Few {
 public:
  void push_back(T value) {
    if (size() == 0) {
      one_ = std::move(value);
      return;
    }
    if (one_) {
      many_.push_back(std::move(*one_));
      one_.reset();
    }
    many_.push_back(std::move(value));
  }
  std::size_t size() const { return one_ ? 1 : many_.size(); }
  bool empty() const { return size() == 0; }
  T* begin() { return one_ ? &*one_ : many_.data(); }
  T* end() { return begin() + size(); }
  const T* begin() const { return one_ ? &*one_ : many_.data(); }
  const T* end() const { return begin() + size(); }
  T& operator[](std::size_t i) { return begin()[i]; }
  const T& operator[](std::size_t i) const { return begin()[i]; }
  T& back() { return begin()[size() - 1]; }

 private:
  std::optional<T> one_;
  std::vector<T> many_;  // all of them, if there are two or more
};

}  // namespace regard
