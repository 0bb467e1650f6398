// Memory for one step: given out by moving a pointer, taken back all at once. After the first steps it holds one block
// as large as the largest step so far and asks the heap for nothing more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/budget.h"
#include "regard/tensor/tensor.h"

namespace regard {

class Arena {
 public:
  Arena();
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* allocate(std::size_t bytes);  // 64-byte aligned, not initialised
  void reset();                       // all that was given out is invalid from now on

  const ArenaEpoch* epoch() const { return epoch_; }
  std::size_t used() const { return used_; }          // bytes given out since the last reset
  std::size_t reserved() const { return reserved_; }  // bytes held

 private:
  struct Block {
    std::byte* data;
    std::size_t bytes;
    std::shared_ptr<Budget> budget;
  };
  void add_block(std::size_t bytes);
  void release(Block& block);

  std::vector<Block> blocks_;
  std::size_t offset_ = 0;  // into the last block
  std::size_t used_ = 0;
  std::size_t reserved_ = 0;
  ArenaEpoch* epoch_;
};

// Page-aligned for large sizes, with huge pages where the system has them; throws kLimit when there is no memory.
std::byte* allocate_bytes(std::size_t bytes, Budget* budget, const char* what);
void free_bytes(std::byte* data, std::size_t bytes, Budget* budget);

}  // namespace regard
