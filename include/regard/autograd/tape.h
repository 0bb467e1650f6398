// The tape: it records operations while they run, and goes back over them to find gradients.
//
//     Tape tape(gradients);
//     Var y = tanh(matmul(tape.constant(x), tape.use(weight)));
//     tape.backward(sum(y));                                       // adds to gradients
//     tape.reset();                                                // the step is over: its memory is used again
//
// An operation is one function: it computes the value and hands the tape a lambda that turns the gradient of its output
// into gradients of its inputs. All memory of a step comes from the tape's arena; after the first steps nothing is
// taken from the heap. A tape belongs to one thread at a time; two tapes in two threads may share a model.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "regard/autograd/op.h"
#include "regard/autograd/parameter.h"
#include "regard/export.h"
#include "regard/tensor/tensor.h"

namespace regard {

class Arena;
class Int8Matrix;
class Tape;
struct PackedMatrix;

// A value on a tape.
class REGARD_API Var {
 public:
  Var() = default;
  const Tensor& value() const;
  const Shape& shape() const { return made().shape(); }
  std::int64_t operator[](int dimension) const { return made()[dimension]; }
  DType dtype() const { return made().dtype(); }
  bool needs_gradient() const;
  bool is_parameter() const;
  Tape& tape() const {
    if (tape_ == nullptr) [[unlikely]]
      undefined();
    return *tape_;
  }
  bool defined() const { return tape_ != nullptr; }

 private:
  friend class Tape;
  [[noreturn]] static void undefined();
  const Tensor& made() const;  // the value, whose numbers may be gone
  Var(Tape* tape, std::uint32_t index, std::uint32_t step) : tape_(tape), index_(index), step_(step) {}
  Tape* tape_ = nullptr;
  std::uint32_t index_ = 0;
  std::uint32_t step_ = 0;
};

// Where a backward pass writes. False if nobody wants this gradient.
struct Target {
  Tensor gradient;
  bool add = false;  // add to what is there; else overwrite
  explicit operator bool() const { return gradient.defined(); }
};

class REGARD_API Tape {
 public:
  Tape();                               // forward only: nothing is recorded
  explicit Tape(Gradients& gradients);  // parameters get gradients
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  Var constant(Tensor value);           // no gradient
  Var variable(Tensor value);           // a gradient that can be read with gradient() until reset
  Var use(const Parameter& parameter);  // its gradient is added to the Gradients of this tape

  void backward(Var loss);                        // of a single number
  void backward(Var output, const Tensor& seed);  // seed: the gradient of output
  void backward_last(Var loss);                   // likewise; then only gradients can be read, the rest is given back
  const Tensor& gradient(Var x) const;            // after backward; not defined if nothing reached x
  void keep(Var x);                               // a result's gradient can be read as well; else its memory is reused
  // Nobody reads the value of x any more, backward included, nor a view of it: what comes next may have its memory, and
  // reading it throws. Operations that look at their result again (tanh, …) keep it all the same.
  void release(Var x);
  void reset();  // ends the step
  void end();    // likewise, but gradients in the tape's memory can be read until reset

  std::size_t nodes() const { return count_; }

  // The rest is for those who write operations.

  // Memory of the step; what a lambda of the backward pass makes is there until it returns.
  Tensor make(const Shape& shape, DType type = DType::kF32) { return Tensor::empty(*arena_, shape, type); }
  Arena& arena() { return *arena_; }

  // Puts `value` on the tape. `back(gradient of the value)` is kept if one of the inputs needs it.
  template <class Back>
  Var record(Op op, Tensor value, std::initializer_list<Var> inputs, Back back) {
    return record(op, std::move(value), std::span<const Var>(inputs.begin(), inputs.size()), std::move(back));
  }
  template <class Back>
  Var record(Op op, Tensor value, std::span<const Var> inputs, Back back);

  // For their lambdas: where the gradient of x goes.
  Target target(Var x);
  // The same for operations that add to some rows of a table [rows, …] and leave the others alone: the gradient is
  // there to be added to, and a parameter's Gradients know which rows it were.
  Target target_rows(Var x, std::span<const std::int32_t> rows);
  // A parameter's gradient that nothing was added to yet, as a place for an operation to work in before backward asks
  // for it; not defined if there is none. give_back, in the lambda, says where that work is by then: in the gradient
  // itself (`in_place`: it counts as added), or elsewhere, or gone, because the gradient was cleared or is used up.
  Tensor borrow(Var x);
  struct GivenBack {
    Tensor work;
    bool in_place = false;
  };
  GivenBack give_back(Var x);
  // For those that only look at their input in another way (reshape): x's gradient is `gradient` itself.
  void pass(Var x, const Tensor& gradient);
  // b as the kernels want it; a parameter is packed once for each of its versions.
  PackedMatrix packed(Var b, bool transposed);
  // b, or its transpose, in 8 bits: of a parameter that has them, if this tape has no gradients. Else null.
  const Int8Matrix* int8(Var b, bool transposed) const;

 private:
  friend class Var;
  struct Node {
    Tensor value;
    Tensor gradient;
    const Parameter* parameter = nullptr;
    void* closure = nullptr;
    void (*back)(void* closure, const Tensor& gradient) = nullptr;
    void (*destroy)(void* closure) = nullptr;
    Op op = Op::constant;
    bool needs = false;
    bool reached = false;   // the gradient holds something
    bool borrowed = false;  // the gradient's memory is that of another node: to be copied before something is added
    bool kept = false;      // the gradient stays after the node's own backward
    bool released = false;  // the value's memory is not its own any more
  };
  struct Packed;
  struct Lending {                 // while the lambda of a node runs, on its thread
    const Node* lender = nullptr;  // the node
    Node* borrower = nullptr;      // who took its gradient over
    int borrowers = 0;
  };

  Node& add_node(Op op, Tensor value);
  void drop_nodes();
  Node& node(Var x) const {
    if (x.tape_ != this || x.step_ != step_) [[unlikely]]
      wrong_var(x);
    return chunks_[x.index_ / kChunk][x.index_ % kChunk];
  }
  [[noreturn]] void wrong_var(Var x) const;
  void* allocate(std::size_t bytes);
  Gradients::Slot& slot_of(const Node& parameter);
  void make_room(Gradients::Slot& slot);  // where another operation has its work
  Tensor make_lasting(const Shape& shape, DType type);
  void go_back(Var output, const Tensor& seed, bool last);
  Tensor one(Var loss);     // its seed
  void let_go(Node& done);  // of a gradient whose lambda has run
  void give_value(Node& done);
  Var last() { return {this, static_cast<std::uint32_t>(count_ - 1), step_}; }

  static constexpr std::size_t kChunk = 256;
  Lending lending_;
  std::vector<std::unique_ptr<Node[]>> chunks_;  // nodes never move, so references to values stay good
  std::size_t count_ = 0;
  std::uint32_t step_ = 1;
  std::unique_ptr<Arena> arena_;
  Gradients* gradients_ = nullptr;
  std::vector<Packed> packed_[2];  // by Parameter::index; as is, transposed
};

template <class Back>
Var Tape::record(Op op, Tensor value, std::span<const Var> inputs, Back back) {
  bool needs = false;
  for (const Var& input : inputs) needs |= input.defined() && node(input).needs;
  Node& added = add_node(op, std::move(value));
  if (needs) {
    added.needs = true;
    added.closure = new (allocate(sizeof(Back))) Back(std::move(back));
    added.back = [](void* closure, const Tensor& gradient) { (*static_cast<Back*>(closure))(gradient); };
    if constexpr (!std::is_trivially_destructible_v<Back>) {
      added.destroy = [](void* closure) { static_cast<Back*>(closure)->~Back(); };
    }
  }
  return last();
}

}  // namespace regard
