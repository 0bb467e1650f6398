#include "models/tape_pool.h"

#include <utility>

namespace regard {
namespace {

thread_local TapePool* in_force = nullptr;

}  // namespace

std::unique_ptr<Tape> TapePool::take(const void* model) {
  const std::lock_guard guard(lock_);
  std::vector<std::unique_ptr<Tape>>& some = waiting_[model];
  if (some.empty()) return std::make_unique<Tape>();
  std::unique_ptr<Tape> found = std::move(some.back());
  some.pop_back();
  return found;
}

void TapePool::give_back(const void* model, std::unique_ptr<Tape> tape) {
  tape->reset();
  const std::lock_guard guard(lock_);
  waiting_[model].push_back(std::move(tape));
}

TapePool::Shared TapePool::share(const void* model, std::uint64_t version, const std::function<Shared()>& make) {
  const std::lock_guard guard(lock_);
  Made& found = shared_[model];
  if (!found.shared || found.version != version) found = {version, make()};
  return found.shared;
}

TapePool* tape_pool_in_force() { return in_force; }

TapePoolScope::TapePoolScope(TapePool* pool) : before_(std::exchange(in_force, pool)) {}
TapePoolScope::~TapePoolScope() { in_force = before_; }

PooledTape::PooledTape(const void* model)
    : pool_(in_force), model_(model), tape_(pool_ != nullptr ? pool_->take(model) : std::make_unique<Tape>()) {}
PooledTape::~PooledTape() {
  if (pool_ != nullptr) pool_->give_back(model_, std::move(tape_));
}

}  // namespace regard
