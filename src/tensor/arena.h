// Memory for one step: given out by moving a pointer, taken back all at once. After the first steps it holds one block
// as large as the largest step so far and asks the heap for nothing more. Large pieces can be given back before the
// step ends, and are given out again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
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

  void* allocate(std::size_t bytes);            // 64-byte aligned, not initialised
  void recycle(void* data, std::size_t bytes);  // as allocated: nobody reads it any more
  void reset();                                 // all that was given out is invalid from now on
  void thin();  // nothing more is asked for until reset: free memory that reset would give back is given back now

  // What is allocated while it lives is given back at its end, unless it is to last.
  class Scope {
   public:
    explicit Scope(Arena& arena, bool lasting = false)
        : arena_(arena), first_(arena.scoped_.size()), outer_(std::exchange(arena.scoped_in_, !lasting)) {}
    ~Scope() { arena_.end_scope(first_, outer_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Arena& arena_;
    std::size_t first_;
    bool outer_;
  };

  // For tests: what is given back is filled with NaN, in all arenas.
  static void poison(bool on);

  const ArenaEpoch* epoch() const { return epoch_; }
  std::size_t used() const { return used_; }          // bytes given out since the last reset, again or not
  std::size_t reserved() const { return reserved_; }  // bytes held

 private:
  struct Block {
    std::byte* data;
    std::size_t bytes;
    std::shared_ptr<Budget> budget;
  };
  struct Piece {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
  };
  void add_block(std::size_t bytes);
  void end_scope(std::size_t first, bool outer);
  std::byte* find_free(std::size_t bytes);
  void join_rest();
  std::byte* take(std::size_t bytes);
  void release(Block& block);

  std::vector<Block> blocks_;
  std::vector<Piece> free_;    // by address; neighbours are one piece
  Piece smalls_ = {};          // what is left of the room for small ones
  std::vector<Piece> scoped_;  // large ones allocated in a Scope
  bool scoped_in_ = false;     // a Scope is there to give them back
  std::size_t offset_ = 0;     // into the last block
  std::size_t used_ = 0;
  std::size_t reserved_ = 0;
  ArenaEpoch* epoch_;
};

// Page-aligned for large sizes, with huge pages where the system has them; throws kLimit when there is no memory.
std::byte* allocate_bytes(std::size_t bytes, Budget* budget, const char* what);
void free_bytes(std::byte* data, std::size_t bytes, Budget* budget);

}  // namespace regard
