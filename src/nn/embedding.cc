#include "regard/nn/embedding.h"

#include <cmath>

namespace regard {

Embedding::Embedding(const Builder& builder, std::int64_t count, std::int64_t width)
    : table_(&builder.uniform("table", {count, width}, std::sqrt(3.0 / static_cast<double>(width)))) {}

Var Embedding::operator()(Tape& tape, const Tensor& ids) const { return embedding(tape.use(*table_), ids); }

}  // namespace regard
