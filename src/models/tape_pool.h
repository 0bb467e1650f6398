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

#include <cstdint>
#include <functional>
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

  // What all decodings of a model may share, made by the first that asks; anew when the weights have another version.
  using Shared = std::shared_ptr<const void>;
  Shared share(const void* model, std::uint64_t version, const std::function<Shared()>& make);

 private:
  std::mutex lock_;
  struct Made {
    std::uint64_t version = 0;
    Shared shared = {};
  };
  std::map<const void*, Made> shared_;
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

// Shared by all decodings of this model that have the pool in force; without a pool, made for this one.
template <class T, class Make>
std::shared_ptr<const T> pooled(const void* model, std::uint64_t version, const Make& make) {
  const auto made = [&] { return std::make_shared<const T>(make()); };
  TapePool* const pool = tape_pool_in_force();
  return pool == nullptr ? made() : std::static_pointer_cast<const T>(pool->share(model, version, made));
}

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
