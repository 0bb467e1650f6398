// Within its life, what this thread makes counts against a budget that another thread began: for work that is handed
// out.
#pragma once

#include <memory>
#include <utility>

#include "base/budget.h"

namespace regard {

class BudgetScope {
 public:
  explicit BudgetScope(std::shared_ptr<Budget> budget);
  ~BudgetScope();
  BudgetScope(const BudgetScope&) = delete;
  BudgetScope& operator=(const BudgetScope&) = delete;

 private:
  std::shared_ptr<Budget> before_;
};

}  // namespace regard
