// Positions as angles: every pair of neighbouring features is turned by its own angle times the position, so that the
// product of a query and a key depends on how far apart they are.                                     Su et al. 2021
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "autograd/by_type.h"
#include "base/check.h"
#include "base/float_mode.h"
#include "kernels/rotate.h"
#include "regard/autograd/ops.h"
#include "tensor/arena.h"

namespace regard {
namespace {

constexpr std::int64_t kFarthest = std::int64_t{1} << 40;  // an angle is then still known to a thousandth
constexpr std::size_t kBlock = 64;                         // positions that are computed together
constexpr std::size_t kBlocks = 1024;                      // positions from 65536 on are computed every time
constexpr std::size_t kTables = 64;                        // so are further pairs of width and base

// The turn of a position as kernels/rotate.h wants it. In double, so that it is rounded once: neither the instruction
// set nor a thread changes a bit.
template <class T>
void compute_turn(std::int64_t position, std::size_t width, double base, T* turn) {
  for (std::size_t c = 0; c < width; c += 2) {
    const double frequency = std::pow(base, -static_cast<double>(c) / static_cast<double>(width));
    const double angle = static_cast<double>(position) * frequency;
    turn[c] = turn[c + 1] = static_cast<T>(std::cos(angle));
    turn[width + c + 1] = static_cast<T>(std::sin(angle));
    turn[width + c] = -turn[width + c + 1];
  }
}

// Turns that were asked for before. They never move, so who was given one can keep it.
template <class T>
class Turns {
 public:
  // For `count` positions; what is not kept here is computed into the arena.
  static void get(Arena& arena, std::size_t count, const auto& position_of, std::size_t width, double base,
                  const T** to) {
    static Turns all;
    const std::lock_guard lock(all.mutex_);
    Table* table = nullptr;
    if (all.tables_.size() < kTables || all.tables_.contains({width, base})) table = &all.tables_[{width, base}];
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t position = position_of(i);
      if (table != nullptr && position >= 0 && static_cast<std::size_t>(position) < kBlock * kBlocks) {
        to[i] = table->find(static_cast<std::size_t>(position), width, base);
      } else {
        const Tensor made =
            Tensor::empty(arena, {2, static_cast<std::int64_t>(width)}, sizeof(T) == 4 ? DType::kF32 : DType::kF64);
        compute_turn(position, width, base, made.data<T>());
        to[i] = made.data<T>();
      }
    }
  }

 private:
  struct Table {
    std::array<std::unique_ptr<T[]>, kBlocks> blocks = {};

    const T* find(std::size_t position, std::size_t width, double base) {
      std::unique_ptr<T[]>& block = blocks[position / kBlock];
      if (block == nullptr) {
        auto made = std::make_unique<T[]>(kBlock * 2 * width);
        for (std::size_t i = 0; i < kBlock; ++i) {
          const auto at = static_cast<std::int64_t>(position / kBlock * kBlock + i);
          compute_turn(at, width, base, made.get() + i * 2 * width);
        }
        block = std::move(made);
      }
      return block.get() + position % kBlock * 2 * width;
    }
  };

  std::mutex mutex_;
  std::map<std::pair<std::size_t, double>, Table> tables_;
};

}  // namespace

Var rotary(Var x, const RotaryOptions& options) {
  const FloatMode mode;
  const Shape& shape = x.shape();
  check(shape.rank() >= 2 && shape[-1] % 2 == 0, "rotary: x is ", shape, ", expected [..., positions, an even width]");
  check(std::isfinite(options.base) && options.base > 0, "rotary: the base is ", options.base,
        ", expected a number above 0");
  Tape& tape = x.tape();
  const Tensor& given = options.positions;
  Tensor spread;
  std::int64_t period = shape[-2];
  if (given.defined()) {
    const Shape rows = shape.without(-1);
    check(given.dtype() == DType::kI32, "rotary: the positions are ", given, ", expected i32");
    check(broadcast(rows, given.shape(), "rotary") == rows, "rotary: the positions are ", given.shape(),
          ", larger than those of x ", rows);
    check(options.first == 0, "rotary: both positions and a first position (", options.first, ") are given");
    spread = tape.make(rows, DType::kI32);
    spread.copy_from(given.expand(rows));
    period = rows.size();
  } else {
    check(options.first >= -kFarthest && options.first <= kFarthest - period, "rotary: the first of ", period,
          " positions is ", options.first, ", none may be beyond ±", kFarthest);
  }
  const auto count = static_cast<std::size_t>(period), width = static_cast<std::size_t>(shape[-1]);
  const auto position_of = [&](std::size_t i) {
    return spread.defined() ? std::int64_t{spread.data<std::int32_t>()[i]}
                            : options.first + static_cast<std::int64_t>(i);
  };
  const Tensor y = tape.make(shape, x.dtype());
  const Tensor turns = tape.make({period, static_cast<std::int64_t>(sizeof(void*))}, DType::kI8);  // pointers
  const auto run = [=]<class T>(const Tensor& from, const Tensor& to, bool back, bool add) {
    const std::size_t rows_there = static_cast<std::size_t>(shape.row_count());
    const RowsOf<const T> source = rows(static_cast<const T*>(from.data<T>()), rows_there, width);
    rotate(source, reinterpret_cast<const T* const*>(turns.raw()), count, rows(to.data<T>(), rows_there, width), back,
           add);
  };
  by_type(y.dtype(), [&]<class T>() {
    Turns<T>::get(tape.arena(), count, position_of, width, options.base, reinterpret_cast<const T**>(turns.raw()));
    run.template operator()<T>(x.value(), y, false, false);
  });
  return tape.record(Op::rotary, y, {x}, [=, &tape](const Tensor& dy) {
    const Target dx = tape.target(x);
    by_type(dy.dtype(), [&]<class T>() { run.template operator()<T>(dy, dx.gradient, true, dx.add); });
  });
}

}  // namespace regard
