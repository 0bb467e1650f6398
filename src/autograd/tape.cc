#include "regard/autograd/tape.h"

#include <algorithm>
#include <cstring>

#include "autograd/by_type.h"
#include "autograd/int8_weights.h"
#include "autograd/kernel_calls.h"
#include "base/check.h"
#include "base/float_mode.h"
#include "kernels/gemm.h"
#include "tensor/arena.h"

namespace regard {

struct Tape::Packed {
  Tensor panels;
  PackedMatrix matrix;
  std::uint64_t version = 0;
  const void* data = nullptr;  // of the value that was packed
};

namespace {

// Whether the value may have the memory of another, or somebody else's.
bool shares_memory(Op op) { return op == Op::reshape || op == Op::slice || op == Op::constant || op == Op::parameter; }

// Whether the backward pass may look at the operation's own result.
bool looks_again(Op op) {
  switch (op) {
    case Op::matmul:
    case Op::add:
    case Op::subtract:
    case Op::multiply:
    case Op::concat:
    case Op::transpose:
    case Op::dropout:
    case Op::embedding:
    case Op::layer_norm:
      return false;
    default:
      return true;
  }
}

}  // namespace

void Var::undefined() { fail(ErrorKind::kInput, "a Var that stands for nothing was read"); }

const Tensor& Var::made() const { return tape().node(*this).value; }

const Tensor& Var::value() const {
  const Tape::Node& found = tape().node(*this);
  if (found.released) [[unlikely]]
    fail(ErrorKind::kInternal, "the value of ", name_of(found.op), ", ", found.value, ", was read after its release");
  return found.value;
}

bool Var::needs_gradient() const { return tape_ != nullptr && tape_->node(*this).needs; }

bool Var::is_parameter() const { return tape_ != nullptr && tape_->node(*this).parameter != nullptr; }

Tape::Tape() : arena_(std::make_unique<Arena>()) {}
Tape::Tape(Gradients& gradients) : arena_(std::make_unique<Arena>()), gradients_(&gradients) {}
Tape::~Tape() { reset(); }

void* Tape::allocate(std::size_t bytes) { return arena_->allocate(bytes); }

Tensor Tape::make_lasting(const Shape& shape, DType type) {
  const Arena::Scope scope(*arena_, true);
  return make(shape, type);
}

void Tape::wrong_var(Var x) const {
  fail(ErrorKind::kInternal,
       x.tape_ != this ? "a Var of another tape was used" : "a Var was used after its step had ended");
}

Tape::Node& Tape::add_node(Op op, Tensor value) {
  if (count_ == chunks_.size() * kChunk) chunks_.push_back(std::make_unique<Node[]>(kChunk));
  Node& added = chunks_[count_ / kChunk][count_ % kChunk];
  ++count_;
  added.op = op;
  added.value = std::move(value);
  return added;
}

Var Tape::constant(Tensor value) {
  add_node(Op::constant, value.is_dense() ? std::move(value) : value.dense(*arena_));
  return last();
}

Var Tape::variable(Tensor value) {
  const Var result = constant(std::move(value));
  node(result).needs = true;
  return result;
}

Var Tape::use(const Parameter& parameter) {
  Node& added = add_node(Op::parameter, parameter.value);
  added.parameter = &parameter;
  if (gradients_ != nullptr && !parameter.frozen) {
    gradients_->slot(parameter);  // throws if it is not there
    added.needs = true;
  }
  return last();
}

Target Tape::target(Var x) {
  if (!x.defined()) return {};
  Node& wanted = node(x);
  if (!wanted.needs) return {};
  if (wanted.parameter != nullptr) {
    Gradients::Slot& slot = slot_of(wanted);
    if (slot.by_rows) slot.forget();
    make_room(slot);
    return {slot.gradient, !std::exchange(slot.fresh, false)};
  }
  if (wanted.reached && wanted.borrowed) {
    const Tensor lender = std::exchange(wanted.gradient, make_lasting(wanted.value.shape(), wanted.value.dtype()));
    wanted.gradient.copy_from(lender);
    wanted.borrowed = false;
  }
  if (!wanted.gradient.defined()) wanted.gradient = make_lasting(wanted.value.shape(), wanted.value.dtype());
  return {wanted.gradient, std::exchange(wanted.reached, true)};
}

Target Tape::target_rows(Var x, std::span<const std::int32_t> rows) {
  const Node& wanted = node(x);
  if (wanted.needs && wanted.parameter != nullptr) {
    Gradients::Slot& slot = slot_of(wanted);
    make_room(slot);
    slot.use(rows);
    return {slot.gradient, true};
  }
  Target to = target(x);
  if (to && !to.add && to.gradient.bytes() > 0) std::memset(to.gradient.raw(), 0, to.gradient.bytes());
  to.add = true;
  return to;
}

Gradients::Slot& Tape::slot_of(const Node& parameter) {
  Gradients::Slot& slot = gradients_->slots_[parameter.parameter->index];
  if (!slot.gradient.defined()) slot.gradient = make_lasting(slot.shape, slot.type);
  return slot;
}

void Tape::make_room(Gradients::Slot& slot) {
  if (!std::exchange(slot.lent, false)) return;
  slot.kept = make_lasting(slot.gradient.shape(), slot.gradient.dtype());
  slot.kept.copy_from(slot.gradient);
}

Tensor Tape::borrow(Var x) {
  const Node& wanted = node(x);
  if (!wanted.needs || wanted.parameter == nullptr) return {};
  Gradients::Slot& slot = slot_of(wanted);
  if (!slot.fresh || slot.lent || slot.kept.defined()) return {};
  if (slot.by_rows) slot.forget();
  slot.lent = true;
  return slot.gradient;
}

Tape::GivenBack Tape::give_back(Var x) {
  Gradients::Slot& slot = slot_of(node(x));
  if (!std::exchange(slot.lent, false)) return {std::exchange(slot.kept, Tensor()), false};
  slot.fresh = false;
  return {slot.gradient, true};
}

void Tape::pass(Var x, const Tensor& gradient) {
  Node& wanted = node(x);
  const bool lends =
      lending_.lender == nullptr || lending_.lender->gradient.raw() == gradient.raw();  // not what is gone soon
  if (wanted.needs && wanted.parameter == nullptr && !wanted.reached && lends) {
    if (wanted.gradient.defined()) arena_->recycle(wanted.gradient.raw(), wanted.gradient.bytes());
    wanted.gradient = gradient.reshape(wanted.value.shape());
    wanted.reached = true;
    wanted.borrowed = true;
    lending_.borrower = &wanted;
    ++lending_.borrowers;
    return;
  }
  if (const Target to = target(x)) {
    by_type(gradient.dtype(), [&]<class T>() {
      add_into(static_cast<const T*>(gradient.data<T>()), to.gradient.data<T>(),
               static_cast<std::size_t>(gradient.size()), to.add);
    });
  }
}

PackedMatrix Tape::packed(Var b, bool transposed) {
  const Node& wanted = node(b);
  const auto rows = static_cast<std::size_t>(wanted.value[0]), columns = static_cast<std::size_t>(wanted.value[1]);
  Matrix source = matrix(static_cast<const float*>(wanted.value.data<float>()), rows, columns);
  if (transposed) source = source.transposed();
  const std::size_t size = packed_size(source.rows, source.columns);
  if (wanted.parameter == nullptr) return pack(source, static_cast<float*>(arena_->allocate(size * sizeof(float))));

  std::vector<Packed>& cache = packed_[transposed ? 1 : 0];
  const Parameter& parameter = *wanted.parameter;
  if (cache.size() <= parameter.index) cache.resize(parameter.index + 1);
  Packed& entry = cache[parameter.index];
  if (entry.data != source.data || entry.version != parameter.version) {
    // Forward passes want it as it is, backward passes transposed, and weights change in between: one memory for both.
    std::vector<Packed>& others = packed_[transposed ? 0 : 1];
    if (parameter.index < others.size()) {
      Packed& other = others[parameter.index];
      if (other.panels.defined()) entry.panels = std::exchange(other, Packed()).panels;
    }
    const Shape shape = {static_cast<std::int64_t>(std::max(size, packed_size(source.columns, source.rows)))};
    if (entry.panels.shape() != shape) entry.panels = Tensor::empty(shape);
    entry.matrix = pack(source, entry.panels.data<float>());
    entry.version = parameter.version;
    entry.data = source.data;
  }
  return entry.matrix;
}

const Int8Matrix* Tape::int8(Var b, bool transposed) const {
  const Parameter* parameter = node(b).parameter;
  if (gradients_ != nullptr || parameter == nullptr || parameter->int8 == nullptr) return nullptr;
  const Int8Weights& found = *parameter->int8;
  return found.version == parameter->version && found.by_row == transposed ? &found.matrix : nullptr;
}

Tensor Tape::one(Var loss) {
  const Tensor& value = node(loss).value;
  check(value.size() == 1, "backward: the loss must be a single number, got shape ", value.shape());
  Tensor seed = make(value.shape(), value.dtype());
  if (value.dtype() == DType::kF64) {
    *seed.data<double>() = 1;
  } else {
    *seed.data<float>() = 1;
  }
  return seed;
}

void Tape::backward(Var loss) { go_back(loss, one(loss), false); }
void Tape::backward_last(Var loss) { go_back(loss, one(loss), true); }
void Tape::backward(Var output, const Tensor& seed) { go_back(output, seed, false); }

void Tape::go_back(Var output, const Tensor& seed, bool last) {
  const FloatMode mode;
  lending_.lender = nullptr;
  Node& top = node(output);
  check(top.needs, "backward: nothing that leads to this value has a gradient");
  check(seed.shape() == top.value.shape() && seed.dtype() == top.value.dtype(), "backward: the seed is ", seed,
        ", expected ", top.value);
  for (std::size_t i = 0; i <= output.index_; ++i) {  // what an earlier pass left between inputs and output
    Node& old = chunks_[i / kChunk][i % kChunk];
    if (old.back != nullptr) {
      old.reached = false;
      if (std::exchange(old.borrowed, false)) old.gradient = Tensor();
    } else if (old.reached && old.borrowed) {  // an input keeps what it has; its lender is about to be written again
      const Tensor lender = std::exchange(old.gradient, make_lasting(old.value.shape(), old.value.dtype()));
      old.gradient.copy_from(lender);
      old.borrowed = false;
    }
  }
  pass(output, seed);
  for (std::size_t i = output.index_ + 1; i-- > 0;) {
    Node& current = chunks_[i / kChunk][i % kChunk];
    if (!current.reached || current.back == nullptr) continue;
    lending_.lender = &current;
    lending_.borrowers = 0;
    if (last && !looks_again(current.op)) give_value(current);  // whoever read it comes later, and has gone back
    {
      const Arena::Scope temporary(*arena_);
      current.back(current.closure, current.gradient);
    }
    let_go(current);
    if (last) give_value(current);
  }
}

void Tape::let_go(Node& done) {
  lending_.lender = nullptr;
  if (done.kept) return;
  if (!done.borrowed) {
    const bool taken = lending_.borrowers > 1 || (lending_.borrowers == 1 && lending_.borrower->borrowed);
    if (!taken) arena_->recycle(done.gradient.raw(), done.gradient.bytes());
    if (taken && lending_.borrowers == 1) lending_.borrower->borrowed = false;  // the memory is theirs now
  }
  done.gradient = Tensor();
  done.reached = done.borrowed = false;
}

void Tape::keep(Var x) { node(x).kept = true; }

void Tape::release(Var x) {
  Node& wanted = node(x);
  if (!looks_again(wanted.op)) give_value(wanted);
}

void Tape::give_value(Node& done) {
  if (shares_memory(done.op) || std::exchange(done.released, true)) return;
  arena_->recycle(done.value.raw(), done.value.bytes());
}

const Tensor& Tape::gradient(Var x) const {
  static const Tensor none;
  const Node& wanted = node(x);
  if (wanted.parameter != nullptr && gradients_ != nullptr) return gradients_->of(*wanted.parameter);
  check(wanted.back == nullptr || wanted.kept, "gradient: of a result (", name_of(wanted.op),
        ") that was not kept: call keep before backward");
  return wanted.reached ? wanted.gradient : none;
}

void Tape::reset() {
  drop_nodes();
  arena_->reset();
}

void Tape::end() {
  drop_nodes();
  arena_->thin();
}

void Tape::drop_nodes() {
  for (std::size_t i = 0; i < count_; ++i) {
    Node& old = chunks_[i / kChunk][i % kChunk];
    if (old.destroy != nullptr) old.destroy(old.closure);
    old = Node();
  }
  count_ = 0;
  ++step_;
}

}  // namespace regard
