// A recurrent layer over whole sequences of unlike lengths.
//
// The batch is sorted by length, so at time t the first active(t) rows are under way and the others do not exist. What
// belongs to a step is kept in rows one after another, active(0) of time 0, active(1) of time 1, …: one product takes
// the inputs of all times at once, one each gives the gradients of both weight matrices, and a step is one product and
// the gates.
//
// The bits are those of a product over all times, matmul(x, input, {.bias = input_bias}), followed by the cell step
// after step; the order of the rows in the sums below serves no other purpose.
#include <algorithm>
#include <cstring>
#include <functional>

#include "autograd/by_type.h"
#include "autograd/kernel_calls.h"
#include "autograd/weight_product.h"
#include "base/check.h"
#include "base/float_mode.h"
#include "base/pool.h"
#include "kernels/cells.h"
#include "regard/autograd/ops.h"
#include "tensor/arena.h"

namespace regard {
namespace {

std::size_t unsign(std::int64_t size) { return static_cast<std::size_t>(size); }

void set_zero(const Tensor& x) {
  if (x.bytes() > 0) std::memset(x.raw(), 0, x.bytes());
}

// Which rows are under way when. Two orders of all rows: by time, and in the order in which the backward pass comes to
// them, the last step taken first.
class Schedule {
 public:
  Schedule(Tape& tape, std::int64_t time, std::span<const std::int32_t> lengths, Direction direction)
      : time_(time), batch_(static_cast<std::int64_t>(lengths.size())), forward_(direction == Direction::kForward) {
    first_ = static_cast<std::int64_t*>(tape.arena().allocate(unsign(time + 1) * sizeof(std::int64_t)));
    std::int64_t active = batch_;
    first_[0] = 0;
    for (std::int64_t t = 0; t < time; ++t) {
      while (active > 0 && lengths[unsign(active - 1)] <= t) --active;
      first_[t + 1] = first_[t] + active;
    }
  }
  std::int64_t time() const { return time_; }
  std::int64_t batch() const { return batch_; }
  std::int64_t rows() const { return first_[time_]; }
  bool full() const { return rows() == time_ * batch_; }
  std::int64_t active(std::int64_t t) const { return t < 0 || t >= time_ ? 0 : first_[t + 1] - first_[t]; }
  std::int64_t by_time(std::int64_t t) const { return first_[t]; }
  std::int64_t by_step(std::int64_t t) const { return forward_ ? rows() - first_[t + 1] : first_[t]; }
  bool one_order() const { return !forward_; }
  std::int64_t at(std::int64_t step) const { return forward_ ? step : time_ - 1 - step; }  // the time of a step
  std::int64_t before(std::int64_t t) const { return forward_ ? t - 1 : t + 1; }
  // How many rows stand before place p of [time · batch], counted without those that do not exist.
  std::int64_t existing_before(std::int64_t p) const {
    return p >= time_ * batch_ ? rows() : first_[p / batch_] + std::min(p % batch_, active(p / batch_));
  }

 private:
  std::int64_t time_, batch_;
  bool forward_;
  std::int64_t* first_;  // number of rows before each time
};

// `count` rows of a dense tensor [..., width] from `first` on.
template <class T>
RowsOf<T> part(const Tensor& x, std::int64_t first, std::int64_t count) {
  return rows(x.data<T>() + first * x[-1], unsign(count), unsign(x[-1]));
}
template <class T>
MatrixOf<const T> as_matrix(const Tensor& x) {
  return matrix(static_cast<const T*>(x.data<T>()), unsign(x[0]), unsign(x[1]));
}

// Between [time, batch, width] and the rows that exist, by time.
template <class T>
void pack_rows(const Schedule& schedule, const Tensor& padded, const Tensor& packed) {
  const std::int64_t width = packed[1];
  parallel(unsign(schedule.time()), [&](std::size_t item) {
    const auto t = static_cast<std::int64_t>(item);
    std::copy_n(padded.data<T>() + t * schedule.batch() * width, schedule.active(t) * width,
                packed.data<T>() + schedule.by_time(t) * width);
  });
}
// x [time, batch, inputs] as the rows that exist.
template <class T>
Tensor packed_rows(Tape& tape, const Schedule& schedule, const Tensor& x) {
  if (schedule.full()) return x.reshape({schedule.rows(), x[2]});
  const Tensor packed = tape.make({schedule.rows(), x[2]}, x.dtype());
  pack_rows<T>(schedule, x, packed);
  return packed;
}
// The states before each step, by step, of y, where each stands after its step; `initial` before the first, or zeros.
template <class T>
Tensor states_before(Tape& tape, const Schedule& schedule, const Tensor& y, Var initial) {
  const std::int64_t width = y[2];
  const Tensor states = tape.make({schedule.rows(), width}, y.dtype());
  parallel(unsign(schedule.time()), [&](std::size_t item) {
    const auto t = static_cast<std::int64_t>(item);
    const std::int64_t before = schedule.before(t), active = schedule.active(t);
    const std::int64_t earlier = std::min(active, schedule.active(before));
    T* to = states.data<T>() + schedule.by_step(t) * width;
    if (earlier > 0) std::copy_n(y.data<T>() + before * schedule.batch() * width, earlier * width, to);
    if (initial.defined()) {
      std::copy_n(initial.value().template data<T>() + earlier * width, (active - earlier) * width,
                  to + earlier * width);
    } else {
      std::fill(to + earlier * width, to + active * width, T{0});
    }
  });
  return states;
}
template <class T>
void unpack_rows(const Schedule& schedule, const Tensor& packed, const Tensor& padded, bool zero_others) {
  const std::int64_t width = packed[1];
  parallel(unsign(schedule.time()), [&](std::size_t item) {
    const auto t = static_cast<std::int64_t>(item);
    T* to = padded.data<T>() + t * schedule.batch() * width;
    std::copy_n(packed.data<T>() + schedule.by_time(t) * width, schedule.active(t) * width, to);
    if (zero_others) std::fill(to + schedule.active(t) * width, to + schedule.batch() * width, T{0});
  });
}

// dbias (= or +=) Σ rows, as sum_to gives it for [time, batch, width] with zeros in the rows that do not exist.
template <class T>
void sum_by_time(Tape& tape, const Schedule& schedule, const Tensor& rows_by_time, const Target& to) {
  const std::int64_t block = static_cast<std::int64_t>(kRowBlock), width = rows_by_time[1];
  const std::int64_t blocks = (schedule.time() * schedule.batch() + block - 1) / block;
  const Tensor sums = tape.make({blocks, width}, rows_by_time.dtype());
  parallel(unsign(blocks), [&](std::size_t item) {
    const auto b = static_cast<std::int64_t>(item);
    const std::int64_t begin = schedule.existing_before(b * block), end = schedule.existing_before((b + 1) * block);
    const std::size_t sizes[] = {unsign(end - begin), unsign(width)};
    sum_dimensions(sizes, 1, static_cast<const T*>(rows_by_time.data<T>() + begin * width), sums.data<T>() + b * width,
                   false);
  });
  sum_to<T>(sums, to);
}

// The same as the cell gives it, one step after another.
template <class T>
void sum_by_step(Tape& tape, const Schedule& schedule, const Tensor& rows_by_step, const Target& to) {
  const std::int64_t width = rows_by_step[1];
  const Tensor sums = tape.make({schedule.time(), width}, rows_by_step.dtype());
  parallel(unsign(schedule.time()), [&](std::size_t item) {
    const auto t = static_cast<std::int64_t>(item);
    const std::size_t sizes[] = {unsign(schedule.active(t)), unsign(width)};
    sum_dimensions(sizes, 1, static_cast<const T*>(rows_by_step.data<T>() + schedule.by_step(t) * width),
                   sums.data<T>() + t * width, false);
  });
  if (!to.add) set_zero(to.gradient);
  for (std::int64_t step = schedule.time(); step-- > 0;) {
    add_into(static_cast<const T*>(sums.data<T>() + schedule.at(step) * width), to.gradient.data<T>(), unsign(width),
             true);
  }
}

void check_inputs(Cell cell, Var x, const RecurrentWeights& w, std::span<const std::int32_t> lengths,
                  const RecurrentState& initial) {
  constexpr const char* kName = "recurrence";
  check_same_type(Op::recurrence,
                  {x, w.input, w.input_bias, w.recurrent, w.recurrent_bias, initial.state, initial.memory});
  check(x.shape().rank() == 3, kName, ": the input is ", x.shape(), ", expected [time, batch, inputs]");
  check(w.recurrent.shape().rank() == 2, kName, ": the recurrent weights are ", w.recurrent.shape(),
        ", expected two dimensions");
  const std::int64_t time = x[0], batch = x[1], width = w.recurrent[0];
  const std::int64_t all = static_cast<std::int64_t>(gates_of(cell)) * width;
  const auto expect = [&](const char* what, Var got, const Shape& expected) {
    check(got.shape() == expected, kName, ": the ", what, " is ", got.shape(), ", expected ", expected);
  };
  expect("input weight", w.input, {x[2], all});
  expect("recurrent weight", w.recurrent, {width, all});
  expect("input bias", w.input_bias, {all});
  expect("recurrent bias", w.recurrent_bias, {all});
  if (initial.state.defined()) expect("initial state", initial.state, {batch, width});
  check(has_memory(cell) || !initial.memory.defined(), kName, ": only an LSTM has a memory");
  if (initial.memory.defined()) expect("initial memory", initial.memory, {batch, width});
  check(static_cast<std::int64_t>(lengths.size()) == batch, kName, ": ", lengths.size(), " lengths for a batch of ",
        batch);
  check(std::is_sorted(lengths.begin(), lengths.end(), std::greater<>()), kName,
        ": lengths must be sorted, longest first");
  check(batch == 0 || (lengths.front() <= time && lengths.back() >= 0), kName, ": lengths go from ",
        batch == 0 ? 0 : lengths.back(), " to ", batch == 0 ? 0 : lengths.front(), ", expected 0 to ", time);
}

}  // namespace

Recurrence recurrence(Cell cell, Var x, const RecurrentWeights& w, std::span<const std::int32_t> lengths,
                      Direction direction, const RecurrentState& initial) {
  const FloatMode mode;
  check_inputs(cell, x, w, lengths, initial);
  Tape& tape = x.tape();
  const DType type = x.dtype();
  const std::int64_t time = x[0], batch = x[1], inputs = x[2], width = w.recurrent[0];
  const std::int64_t all = static_cast<std::int64_t>(gates_of(cell)) * width;
  const bool remembers = has_memory(cell);
  const Schedule schedule(tape, time, lengths, direction);
  const std::int64_t total = schedule.rows();
  bool learns = false;
  for (const Var& each : {x, w.input, w.input_bias, w.recurrent, w.recurrent_bias, initial.state, initial.memory}) {
    learns |= each.needs_gradient();
  }

  // The states of all times, then the last state, then the last memory.
  const Tensor y = tape.make({time + (remembers ? 2 : 1), batch, width}, type);
  const Tensor last = y.slice(0, time, time + 1).reshape({batch, width});
  const Tensor memory = remembers ? y.slice(0, time + 1, time + 2).reshape({batch, width}) : Tensor();
  const auto start = [](Var value, const Tensor& to) {
    if (value.defined()) {
      to.copy_from(value.value());
    } else {
      set_zero(to);
    }
  };
  start(initial.state, last);
  if (remembers) start(initial.memory, memory);

  const Tensor gates = tape.make({total, all}, type);  // by time: first the inputs' share, then what it became
  // What the backward pass also wants to know, by time, and memories before each step, by step. The states before each
  // step it finds in y, and the rows of x in x.
  const Tensor extra = learns && has_extra(cell) ? tape.make({total, width}, type) : Tensor();
  const Tensor memories = learns && remembers ? tape.make({total, width}, type) : Tensor();
  by_type(type, [&]<class T>() {
    const Arena::Scope temporary(tape.arena());
    if (!schedule.full()) {
      for (std::int64_t t = 0; t < time; ++t) {
        std::fill(y.data<T>() + (t * batch + schedule.active(t)) * width, y.data<T>() + (t + 1) * batch * width, T{0});
      }
    }
    multiply_by_weight<T>(tape, as_matrix<T>(packed_rows<T>(tape, schedule, x.value())), w.input, false,
                          gates.data<T>(), {.bias = w.input_bias.value().data<T>()});
    const PackedWeights<T> recurrent(tape, w.recurrent, false);
    const Tensor products = tape.make({batch, all}, type);
    for (std::int64_t step = 0; step < time; ++step) {
      const std::int64_t t = schedule.at(step), active = schedule.active(t);
      if (active == 0) continue;
      recurrent.multiply(matrix(static_cast<const T*>(last.data<T>()), unsign(active), unsign(width)),
                         products.data<T>(), {.bias = w.recurrent_bias.value().data<T>()});
      CellForward<T> run{.input = part<T>(gates, schedule.by_time(t), active),
                         .recurrent = part<T>(products, 0, active),
                         .state = part<T>(last, 0, active),
                         .next_state = part<T>(last, 0, active),
                         .copy = part<T>(y, t * batch, active)};
      if (learns) {
        run.gates = part<T>(gates, schedule.by_time(t), active);
        if (extra.defined()) run.extra = part<T>(extra, schedule.by_time(t), active);
      }
      if (remembers) {
        run.memory = run.next_memory = part<T>(memory, 0, active);
        if (learns) run.old_memory = part<T>(memories, schedule.by_step(t), active);
      }
      cell_forward(cell, run);
    }
  });

  const Var result = tape.record(
      Op::recurrence, y, {x, w.input, w.input_bias, w.recurrent, w.recurrent_bias, initial.state, initial.memory},
      [=, &tape](const Tensor& dy) {
        by_type(type, [&]<class T>() {
          const Tensor d_projected = tape.make({total, all}, type);  // by time
          const bool twice = splits_gradient(cell) || !schedule.one_order();
          const Tensor d_products = twice ? tape.make({total, all}, type) : d_projected;  // by step
          const auto copied = [&](std::int64_t which) {
            const Tensor copy = tape.make({batch, width}, type);
            copy.copy_from(dy.slice(0, which, which + 1).reshape({batch, width}));
            return copy;
          };
          // Gradients of the state and the memory after the step that comes next.
          const Tensor d_last = copied(time), d_memory = remembers ? copied(time + 1) : Tensor();
          const PackedWeights<T> recurrent(tape, w.recurrent, true);
          const Tensor states = states_before<T>(tape, schedule, y, initial.state);
          std::int64_t reached = 0;
          for (std::int64_t step = time; step-- > 0;) {
            const std::int64_t t = schedule.at(step), before = schedule.before(t), active = schedule.active(t);
            if (active == 0) continue;
            if (active > reached) {  // rows whose last step this is; the others got theirs below
              add_into(static_cast<const T*>(dy.data<T>() + (t * batch + reached) * width),
                       d_last.data<T>() + reached * width, unsign((active - reached) * width), true);
              reached = active;
            }
            CellBackward<T> run{.gates = part<T>(gates, schedule.by_time(t), active),
                                .state = part<T>(states, schedule.by_step(t), active),
                                .d_next = part<T>(d_last, 0, active),
                                .d_input = part<T>(d_projected, schedule.by_time(t), active),
                                .d_state = part<T>(d_last, 0, active)};
            if (extra.defined()) run.extra = part<T>(extra, schedule.by_time(t), active);
            if (twice) run.d_recurrent = part<T>(d_products, schedule.by_step(t), active);
            if (remembers) {
              run.memory = part<T>(memories, schedule.by_step(t), active);
              run.d_memory = part<T>(d_memory, 0, active);
            }
            const std::int64_t earlier = std::min(active, schedule.active(before));
            if (earlier > 0) run.more = part<T>(dy, before * batch, earlier);
            cell_backward(cell, run);
            // Rows whose first step this is lead to the initial state alone.
            const std::int64_t further = initial.state.needs_gradient() ? active : earlier;
            const RowsOf<const T> up = part<T>(d_products, schedule.by_step(t), further);
            recurrent.multiply(matrix(up.data, up.count, up.width), d_last.data<T>(), {.accumulate = true});
          }
          const auto give = [&](Var to, const Tensor& gradient) {
            if (const Target target = tape.target(to)) {
              add_into(static_cast<const T*>(gradient.data<T>()), target.gradient.data<T>(), unsign(gradient.size()),
                       target.add);
            }
          };
          give(initial.state, d_last);
          give(initial.memory, d_memory);
          const auto weigh = [&](Var to, const Tensor& left, const Tensor& right) {
            if (const Target target = tape.target(to)) {
              gemm(as_matrix<T>(left).transposed(), as_matrix<T>(right),
                   matrix(target.gradient.data<T>(), unsign(left[1]), unsign(right[1])),
                   EpilogueOf<T>{.accumulate = target.add});
            }
          };
          weigh(w.recurrent, states, d_products);
          if (const Target to = tape.target(w.recurrent_bias)) sum_by_step<T>(tape, schedule, d_products, to);
          weigh(w.input, packed_rows<T>(tape, schedule, x.value()), d_projected);
          if (const Target to = tape.target(w.input_bias)) sum_by_time<T>(tape, schedule, d_projected, to);
          if (const Target to = tape.target(x)) {
            const bool full = schedule.full();
            const Tensor d_packed = full ? to.gradient.reshape({total, inputs}) : tape.make({total, inputs}, type);
            if (!full && to.add) pack_rows<T>(schedule, to.gradient, d_packed);
            multiply_by_weight<T>(tape, as_matrix<T>(d_projected), w.input, true, d_packed.data<T>(),
                                  {.accumulate = to.add});
            if (!full) unpack_rows<T>(schedule, d_packed, to.gradient, !to.add);
          }
        });
      });
  // Parts of the result. Unlike slice, the first one to bring a gradient does not write zeros below itself.
  const auto cut = [&](std::int64_t begin, std::int64_t end, const Shape& shape) {
    const Tensor view = y.slice(0, begin, end).reshape(shape);
    return tape.record(Op::slice, view, {result}, [=, &tape](const Tensor& dy) {
      const Target to = tape.target(result);
      const Tensor own = to.gradient.slice(0, begin, end);
      if (!to.add) {
        set_zero(to.gradient.slice(0, 0, begin));
        set_zero(to.gradient.slice(0, end, to.gradient[0]));
      }
      by_type(type, [&]<class T>() {
        if (to.add) {
          add_scaled(dy.data<T>(), T{1}, own.data<T>(), unsign(dy.size()));
        } else {
          scale(dy.data<T>(), T{1}, own.data<T>(), unsign(dy.size()));  // a copy, by all threads
        }
      });
    });
  };
  const Shape one = {batch, width};
  return {cut(0, time, {time, batch, width}), cut(time, time + 1, one),
          remembers ? cut(time + 1, time + 2, one) : Var()};
}

}  // namespace regard
