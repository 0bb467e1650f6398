// A learned vector for every id.
#pragma once

#include <cstdint>

#include "regard/autograd/ops.h"
#include "regard/export.h"
#include "regard/nn/builder.h"

namespace regard {

class REGARD_API Embedding {
 public:
  Embedding(const Builder& builder, std::int64_t count, std::int64_t width);

  Var operator()(Tape& tape, const Tensor& ids) const;  // ids i32 [...] -> [..., width]

  const Parameter& table() const { return *table_; }  // [count, width]

 private:
  const Parameter* table_;
};

}  // namespace regard
