#include "tensor/arena.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/check.h"

namespace regard {
namespace {

constexpr std::size_t kAlign = 64;
constexpr std::size_t kPage = std::size_t{64} << 10;  // the largest there is; smaller ones divide it
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kFirstBlock = std::size_t{1} << 20;
constexpr std::size_t kLeastRecycled = 4096;            // smaller pieces are not worth looking for
constexpr std::size_t kSmalls = std::size_t{64} << 10;  // where they stand together, or they would keep others apart
// Below this, giving memory back costs more than it brings: others' free pages go too and are asked for again (`regard
// translate --trace`, 1000 lines: 30 MB).
constexpr std::size_t kTrimmed = std::size_t{64} << 20;

std::atomic<bool> poisons = false;

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
  free_.reserve(1024);  // rather more than there ever are, so that a step of another shape needs no more
  scoped_.reserve(256);
  blocks_.push_back({allocate_bytes(bytes, budget.get(), "memory for a step"), bytes, budget});
  reserved_ += bytes;
  offset_ = 0;
}

void Arena::poison(bool on) { poisons = on; }

void Arena::end_scope(std::size_t first, bool outer) {
  for (std::size_t i = first; i < scoped_.size(); ++i) recycle(scoped_[i].data, scoped_[i].bytes);
  scoped_.resize(first);
  scoped_in_ = outer;
}

void Arena::recycle(void* data, std::size_t bytes) {
  const Piece piece{static_cast<std::byte*>(data), round_up(bytes, kAlign)};
  if (piece.bytes < kLeastRecycled) return;
  if (poisons) std::memset(piece.data, 0xff, piece.bytes);
  const auto next = std::lower_bound(free_.begin(), free_.end(), piece.data,
                                     [](const Piece& each, const std::byte* at) { return each.data < at; });
  const bool joins_next = next != free_.end() && piece.data + piece.bytes == next->data;
  if (next != free_.begin() && std::prev(next)->data + std::prev(next)->bytes == piece.data) {
    Piece& before = *std::prev(next);
    before.bytes += piece.bytes + (joins_next ? next->bytes : 0);
    if (joins_next) free_.erase(next);
  } else if (joins_next) {
    *next = {piece.data, piece.bytes + next->bytes};
  } else {
    free_.insert(next, piece);
  }
}

// The first piece that is large enough.
std::byte* Arena::find_free(std::size_t bytes) {
  const auto fits = [&](const Piece& each) { return each.bytes >= bytes; };
  const auto piece = std::find_if(free_.begin(), free_.end(), fits);
  if (piece == free_.end()) return nullptr;
  std::byte* const found = piece->data;
  *piece = {found + bytes, piece->bytes - bytes};
  if (piece->bytes == 0) free_.erase(piece);
  return found;
}

// Pieces that end where the last block's rest begins become part of that rest.
void Arena::join_rest() {
  const std::byte* const rest = blocks_.back().data + offset_;
  const auto piece =
      std::find_if(free_.begin(), free_.end(), [&](const Piece& each) { return each.data + each.bytes == rest; });
  if (piece == free_.end() || piece->data < blocks_.back().data) return;
  offset_ -= piece->bytes;
  free_.erase(piece);
}

std::byte* Arena::take(std::size_t bytes) {
  if (std::byte* const found = find_free(bytes)) return found;
  if (!blocks_.empty()) join_rest();
  if (blocks_.empty() || blocks_.back().bytes - offset_ < bytes) {
    if (!blocks_.empty()) {
      const std::size_t left = std::exchange(offset_, blocks_.back().bytes);
      recycle(blocks_.back().data + left, blocks_.back().bytes - left);
    }
    add_block(std::max({bytes, kFirstBlock, std::min(reserved_, std::size_t{256} << 20)}));
  }
  return blocks_.back().data + std::exchange(offset_, offset_ + bytes);
}

void* Arena::allocate(std::size_t bytes) {
  if (bytes > SIZE_MAX / 2) fail(ErrorKind::kLimit, "out of memory: a tensor of ", bytes, " bytes");
  const std::size_t wanted = round_up(bytes, kAlign);
  used_ += wanted;
  if (wanted < kLeastRecycled) {
    if (smalls_.data == nullptr || smalls_.bytes < wanted) smalls_ = {take(kSmalls), kSmalls};
    smalls_.bytes -= wanted;
    return std::exchange(smalls_.data, smalls_.data + wanted);
  }
  std::byte* const result = take(wanted);
  if (scoped_in_) scoped_.push_back({result, wanted});
  return result;
}

void Arena::thin() {
  if (blocks_.size() < 2) return;
  for (const Piece& each : free_) {
    const auto begin = reinterpret_cast<std::uintptr_t>(each.data);
    const std::size_t skipped = round_up(begin, kPage) - begin;
    if (each.bytes < skipped + kPage) continue;
    madvise(each.data + skipped, (each.bytes - skipped) / kPage * kPage, MADV_DONTNEED);
  }
}

void Arena::reset() {
  ++epoch_->now;
  if (blocks_.size() > 1) {  // next time, one block that holds it all
    const std::size_t total = reserved_;
    for (Block& block : blocks_) release(block);
    blocks_.clear();
#ifdef __GLIBC__
    if (total >= kTrimmed) malloc_trim(0);  // or it holds on to them beside the new one
#endif
    add_block(total);
  }
  free_.clear();
  smalls_ = {};
  offset_ = 0;
  used_ = 0;
}

}  // namespace regard
