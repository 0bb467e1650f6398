// The table of operations: what each computes, on which shapes it is tried, and what it must refuse. Every check of
// contract and correctness is a loop over this table; an operation of REGARD_OPS without a row does not link.
//
//     for (const Row& row : table()) for (const Case& each : row.cases) … worst_error(each) …
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "regard/autograd/op.h"
#include "regard/autograd/tape.h"
#include "verify/scalar.h"

namespace regard::verify {

// Which items of a batch a case is run on: all, or a few of them without their neighbours.
struct Items {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t count() const { return end - begin; }
};

// Numbers drawn evenly from [low, high]; points where the operation has a kink are told, so that finite differences
// stay away from them.
struct Input {
  const char* name;
  Shape shape;
  double low = -1;
  double high = 1;
  std::vector<double> kinks = {};
  // Dimension 0 runs over the items of the batch: an item's result must not depend on the others.
  bool batched = false;
};

// An input as the scalar formula sees it, row by row.
struct Numbers {
  Shape shape;
  std::vector<Scalar> all;

  const Scalar& operator[](std::int64_t i) const { return all[static_cast<std::size_t>(i)]; }
  std::int64_t size() const { return static_cast<std::int64_t>(all.size()); }
};

using Build = std::function<Var(Tape& tape, std::span<const Var> inputs, Items items)>;
using Formula = std::function<std::vector<Scalar>(std::span<const Numbers> inputs, Items items)>;

struct Case {
  std::string name;
  std::vector<Input> inputs;
  Build build;      // the operation
  Formula formula;  // the same, one number at a time; none: the f64 reference has to do
  // Nothing depends on the inputs by its nature (a softmax over one number is 1): there is no gradient to find.
  bool flat = false;
  // For operations made of smooth pieces: on which piece the inputs lie (f64). Finite differences that would leave it
  // are skipped and counted, as those close to kinks of an input are.
  std::function<std::vector<bool>(Tape& tape, std::span<const Var> inputs, Items items)> pieces = {};
  bool output_batched = true;  // if inputs are: dimension 0 of the output runs over the items too

  std::int64_t items() const;  // 0: no input is batched
};

// What must throw, and the words that the text has to hold: what was asked, what was expected, what was got.
struct BadInput {
  std::string name;
  std::function<void(Tape& tape)> call;
  std::vector<std::string> words;
};

struct Row {
  Op op;
  std::string formula;  // to be read
  std::vector<Case> cases;
  std::vector<BadInput> bad;
  std::vector<Case> large;  // so large that threads share the work; bits are compared, nothing else
};

template <Op op>
Row row();  // one specialisation each, in rows_*.cc

#define REGARD_DECLARE_ROW(name) \
  template <>                    \
  Row row<Op::name>();
REGARD_OPS(REGARD_DECLARE_ROW)
#undef REGARD_DECLARE_ROW

const std::vector<Row>& table();
const Row& row_of(const std::string& op);  // throws, listing what there is

// For rows: f32 or f64 zeros on the tape, as an input of a call that must fail before it reads them.
Var blank(Tape& tape, const Shape& shape, DType type = DType::kF32);

}  // namespace regard::verify
