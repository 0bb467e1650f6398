#include "verify/table.h"

#include "base/check.h"

namespace regard::verify {

std::int64_t Case::items() const {
  for (const Input& input : inputs) {
    if (input.batched) return input.shape[0];
  }
  return 0;
}

const std::vector<Row>& table() {
  static const std::vector<Row> rows = {
#define REGARD_ROW(name) row<Op::name>(),
      REGARD_OPS(REGARD_ROW)
#undef REGARD_ROW
  };
  return rows;
}

const Row& row_of(const std::string& op) {
  std::string known;
  for (const Row& each : table()) {
    if (op == name_of(each.op)) return each;
    known += (known.empty() ? "" : ", ") + std::string(name_of(each.op));
  }
  fail(ErrorKind::kInput, "unknown operation '", op, "'; known: ", known);
}

Var blank(Tape& tape, const Shape& shape, DType type) {
  Tensor zeros = tape.make(shape, type);
  std::fill_n(zeros.raw(), zeros.bytes(), std::byte{0});
  return tape.variable(zeros);
}

}  // namespace regard::verify
