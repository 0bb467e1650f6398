// Tapes that wait for the next batch. A tape has memory and the weights in the order that products like; who decodes
// one batch after another would make both anew for each.
//
//     TapePool pool;
//     const TapePoolScope scope(pool);           // of this thread, until the end of the block
//     … model.decode(batch) …                    // takes a tape of the pool, and gives it back when it ends
//
// Without a scope every decoding has a tape of its own, and nothing is held when it ends. The models must outlive the
// pool, or not be used with it again.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "regard/autograd/tape.h"

namespace regard {

class TapePool {
 public:
  std::unique_ptr<Tape> take(const void* model);  // one that this model has used before, else a new one
  void give_back(const void* model, std::unique_ptr<Tape> tape);

 private:
  std::mutex lock_;
  std::map<const void*, std::vector<std::unique_ptr<Tape>>> waiting_;
};

TapePool* tape_pool_in_force();  // of this thread; null: none

class TapePoolScope {
 public:
  explicit TapePoolScope(TapePool& pool) : TapePoolScope(&pool) {}
  explicit TapePoolScope(TapePool* pool);  // null: none
  ~TapePoolScope();
  TapePoolScope(const TapePoolScope&) = delete;
  TapePoolScope& operator=(const TapePoolScope&) = delete;

 private:
  TapePool* before_;
};

// A tape for one decoding, of the pool in force if there is one.
class PooledTape {
 public:
  explicit PooledTape(const void* model);
  ~PooledTape();
  PooledTape(const PooledTape&) = delete;
  PooledTape& operator=(const PooledTape&) = delete;
  Tape& operator*() const { return *tape_; }

 private:
  TapePool* pool_;
  const void* model_;
  std::unique_ptr<Tape> tape_;
};

}  // namespace regard
