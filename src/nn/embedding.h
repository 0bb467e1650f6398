// A learned vector for every id.
#pragma once

#include <cmath>
#include <cstdint>

#include "autograd/ops.h"
#include "nn/builder.h"

namespace regard {

class Embedding {
 public:
  Embedding(const Builder& builder, std::int64_t count, std::int64_t width)
      : table_(&builder.uniform("table", {count, width}, std::sqrt(3.0 / static_cast<double>(width)))) {}

  Var operator()(Tape& tape, const Tensor& ids) const {  // ids i32 [...] -> [..., width]
    return embedding(tape.use(*table_), ids);
  }

  const Parameter& table() const { return *table_; }  // [count, width]

 private:
  const Parameter* table_;
};

}  // namespace regard
