#include "tensor/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "base/check.h"

namespace regard {
namespace {

constexpr std::size_t kAlign = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kFirstBlock = std::size_t{1} << 20;

std::size_t round_up(std::size_t bytes, std::size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

// Epochs of arenas that are gone, to be used again: their counts only ever rise.
struct EpochStore {
  std::mutex lock;
  std::vector<ArenaEpoch*> spare;
};
EpochStore& epoch_store() {
  static auto* store = new EpochStore;  // never destroyed: tensors in static storage may ask late
  return *store;
}

}  // namespace

std::byte* allocate_bytes(std::size_t bytes, Budget* budget, const char* what) {
  if (bytes > SIZE_MAX / 2) fail(ErrorKind::kLimit, "out of memory: ", what, " of ", bytes, " bytes");
  const bool large = bytes >= 2 * kHugePage;
  const std::size_t align = large ? kHugePage : kAlign;
  const std::size_t rounded = round_up(std::max<std::size_t>(bytes, 1), kAlign);
  if (budget != nullptr) budget->take(rounded, what);
  void* data = std::aligned_alloc(align, round_up(rounded, align));
  if (data == nullptr) {
    if (budget != nullptr) budget->give_back(rounded);
    fail(ErrorKind::kLimit, "out of memory: ", what, " of ", bytes, " bytes");
  }
  if (large) madvise(data, rounded, MADV_HUGEPAGE);
  return static_cast<std::byte*>(data);
}

void free_bytes(std::byte* data, std::size_t bytes, Budget* budget) {
  std::free(data);
  if (budget != nullptr) budget->give_back(round_up(std::max<std::size_t>(bytes, 1), kAlign));
}

Arena::Arena() {
  EpochStore& store = epoch_store();
  const std::lock_guard lock(store.lock);
  if (store.spare.empty()) {
    epoch_ = new ArenaEpoch;
  } else {
    epoch_ = store.spare.back();
    store.spare.pop_back();
  }
}

Arena::~Arena() {
  ++epoch_->now;
  for (Block& block : blocks_) release(block);
  EpochStore& store = epoch_store();
  const std::lock_guard lock(store.lock);
  store.spare.push_back(epoch_);
}

void Arena::release(Block& block) {
  reserved_ -= block.bytes;
  free_bytes(block.data, block.bytes, block.budget.get());
}

void Arena::add_block(std::size_t bytes) {
  const std::shared_ptr<Budget>& budget = current_budget();
  blocks_.reserve(blocks_.size() + 1);
  blocks_.push_back({allocate_bytes(bytes, budget.get(), "memory for a step"), bytes, budget});
  reserved_ += bytes;
  offset_ = 0;
}

void* Arena::allocate(std::size_t bytes) {
  if (bytes > SIZE_MAX / 2) fail(ErrorKind::kLimit, "out of memory: a tensor of ", bytes, " bytes");
  const std::size_t wanted = round_up(bytes, kAlign);
  if (blocks_.empty() || blocks_.back().bytes - offset_ < wanted) {
    add_block(std::max({wanted, kFirstBlock, std::min(reserved_, std::size_t{256} << 20)}));
  }
  void* result = blocks_.back().data + offset_;
  offset_ += wanted;
  used_ += wanted;
  return result;
}

void Arena::reset() {
  ++epoch_->now;
  if (blocks_.size() > 1) {  // next time, one block that holds it all
    const std::size_t total = reserved_;
    for (Block& block : blocks_) release(block);
    blocks_.clear();
    add_block(total);
  }
  offset_ = 0;
  used_ = 0;
}

}  // namespace regard
