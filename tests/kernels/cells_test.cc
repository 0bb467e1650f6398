#include "kernels/cells.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/guarded.h"

namespace regard {
namespace {

constexpr Cell kCells[] = {Cell::kTanh, Cell::kGru, Cell::kLstm};
struct Size {
  std::size_t count, width;
};
constexpr Size kSizes[] = {{0, 5}, {5, 0}, {1, 1}, {3, 2}, {7, 15}, {4, 16}, {5, 17}, {3, 65}, {67, 130}};

std::vector<float> joined(const std::vector<const Guarded*>& parts) {
  std::vector<float> all;
  for (const Guarded* part : parts) {
    const std::vector<float> values = part->values();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

// Everything that a step writes, one after another. `in_place`: new values go where the old ones were.
std::vector<float> step(Cell cell, Size s, bool in_place) {
  const std::size_t n = s.count, w = s.width;
  Guarded x(random_floats(n * gates_of(cell) * w, 1));
  const Guarded u(random_floats(n * gates_of(cell) * w, 2));
  Guarded h(random_floats(n * w, 3, -1, 1)), c(random_floats(n * w, 4)), next(n * w), next_memory(n * w);
  Guarded gates(n * gates_of(cell) * w), extra(n * w), copy(n * w), old_memory(n * w);
  const auto view = [n](auto& x_, std::size_t width) { return rows(x_.data(), n, width); };
  cell_forward(cell, CellForward<float>{.input = view(x, gates_of(cell) * w),
                                        .recurrent = view(u, gates_of(cell) * w),
                                        .state = view(h, w),
                                        .memory = view(c, w),
                                        .next_state = view(in_place ? h : next, w),
                                        .next_memory = view(in_place ? c : next_memory, w),
                                        .gates = view(in_place ? x : gates, gates_of(cell) * w),
                                        .extra = view(extra, w),
                                        .copy = view(copy, w),
                                        .old_memory = view(old_memory, w)});
  return joined({in_place ? &h : &next, in_place && has_memory(cell) ? &c : &next_memory, in_place ? &x : &gates,
                 &extra, &copy, &old_memory});
}

std::vector<double> exact_step(Cell cell, Size s) {
  const std::size_t n = s.count, w = s.width, g = gates_of(cell) * w;
  const std::vector<double> x = doubles(random_floats(n * g, 1)), u = doubles(random_floats(n * g, 2)),
                            h = doubles(random_floats(n * w, 3, -1, 1)), c = doubles(random_floats(n * w, 4));
  std::vector<double> next(n * w), next_memory(n * w), gates(n * g), extra(n * w), copy(n * w), old_memory(n * w);
  reference::cell_forward(cell, CellForward<double>{.input = rows(x.data(), n, g),
                                                    .recurrent = rows(u.data(), n, g),
                                                    .state = rows(h.data(), n, w),
                                                    .memory = rows(c.data(), n, w),
                                                    .next_state = rows(next.data(), n, w),
                                                    .next_memory = rows(next_memory.data(), n, w),
                                                    .gates = rows(gates.data(), n, g),
                                                    .extra = rows(extra.data(), n, w),
                                                    .copy = rows(copy.data(), n, w),
                                                    .old_memory = rows(old_memory.data(), n, w)});
  for (const std::vector<double>* part : {&next_memory, &gates, &extra, &copy, &old_memory}) {
    next.insert(next.end(), part->begin(), part->end());
  }
  return next;
}

TEST(Cells, MatchTheReferenceOnEveryTarget) {
  for (const Cell cell : kCells) {
    for (const Size size : kSizes) {
      SCOPED_TRACE(testing::Message() << "cell " << static_cast<int>(cell) << ", " << size.count << " × "
                                      << size.width);
      const std::vector<double> exact = exact_step(cell, size);
      on_every_target([&] { return step(cell, size, false); }, [&](const auto& y) { expect_close(y, exact, {}); });
    }
  }
}

TEST(Cells, StateMemoryAndInputMayBeOverwritten) {
  for (const Cell cell : kCells) {
    EXPECT_TRUE(same_bits(step(cell, {5, 33}, true), step(cell, {5, 33}, false))) << static_cast<int>(cell);
  }
}

TEST(Cells, WhatNobodyWantsIsNotWritten) {
  for (const Cell cell : kCells) {
    const std::vector<float> x = random_floats(3 * gates_of(cell) * 17, 1), h = random_floats(3 * 17, 2);
    std::vector<float> all = h, memory = h, plain(h.size()), plain_memory(h.size());
    const auto input = rows(x.data(), 3, gates_of(cell) * 17);
    std::vector<float> gates(3 * gates_of(cell) * 17), extra(3 * 17);
    cell_forward(cell, {.input = input,
                        .recurrent = input,
                        .state = rows(h.data(), 3, 17),
                        .memory = rows(h.data(), 3, 17),
                        .next_state = rows(all.data(), 3, 17),
                        .next_memory = rows(memory.data(), 3, 17),
                        .gates = rows(gates.data(), 3, gates_of(cell) * 17),
                        .extra = rows(extra.data(), 3, 17)});
    cell_forward(cell, {.input = input,
                        .recurrent = input,
                        .state = rows(h.data(), 3, 17),
                        .memory = rows(h.data(), 3, 17),
                        .next_state = rows(plain.data(), 3, 17),
                        .next_memory = rows(plain_memory.data(), 3, 17)});
    EXPECT_TRUE(same_bits(all, plain)) << static_cast<int>(cell);
  }
}

// `more`: rows that have a gradient of their own to add; `both`: x and u are written apart.
template <class T, class Memory>
std::vector<Memory> gradients(Cell cell, Size s, std::size_t more, bool both) {
  const std::size_t n = s.count, w = s.width, g = gates_of(cell) * w;
  const auto drawn = [](std::size_t count, std::uint64_t seed, float low, float high) {
    const std::vector<float> numbers = random_floats(count, seed, low, high);
    return std::vector<T>(numbers.begin(), numbers.end());
  };
  const std::vector<T> gates = drawn(n * g, 1, 0.05f, 0.95f), kept = drawn(n * w, 7, -1, 1), h = drawn(n * w, 2, -1, 1),
                       c = drawn(n * w, 3, -2, 2), extra = drawn(more * w, 4, -1, 1);
  std::vector<T> d_next = drawn(n * w, 5, -1, 1), d_memory = drawn(n * w, 6, -1, 1);
  Memory dx(n * g), du(both ? n * g : 0);
  const auto run = [&](const CellBackward<T>& rows) {
    if constexpr (std::is_same_v<T, float>) {
      cell_backward(cell, rows);
    } else {
      reference::cell_backward(cell, rows);
    }
  };
  run({.gates = rows(static_cast<const T*>(gates.data()), n, g),
       .extra = rows(static_cast<const T*>(kept.data()), n, w),
       .state = rows(static_cast<const T*>(h.data()), n, w),
       .memory = rows(static_cast<const T*>(c.data()), n, w),
       .d_next = rows(static_cast<const T*>(d_next.data()), n, w),
       .d_memory = rows(d_memory.data(), n, w),
       .d_input = rows(dx.data(), n, g),
       .d_recurrent = both ? rows(du.data(), n, g) : RowsOf<T>{},
       .d_state = rows(d_next.data(), n, w),  // in place
       .more = rows(static_cast<const T*>(extra.data()), more, w)});
  return {dx, du, Memory(d_next), Memory(d_memory)};
}

TEST(Cells, GradientsMatchTheReferenceOnEveryTarget) {
  for (const Cell cell : kCells) {
    for (const Size size : kSizes) {
      for (const std::size_t more : {std::size_t{0}, size.count / 2, size.count}) {
        SCOPED_TRACE(testing::Message() << "cell " << static_cast<int>(cell) << ", " << size.count << " × "
                                        << size.width << ", more for " << more);
        const bool both = more != 0 || splits_gradient(cell);
        std::vector<double> exact;
        for (const auto& part : gradients<double, std::vector<double>>(cell, size, more, both)) {
          exact.insert(exact.end(), part.begin(), part.end());
        }
        on_every_target(
            [&] {
              std::vector<float> got;
              for (const auto& part : gradients<float, Guarded>(cell, size, more, both)) {
                const std::vector<float> values = part.values();
                got.insert(got.end(), values.begin(), values.end());
              }
              return got;
            },
            [&](const auto& y) { expect_close(y, exact, {}); });
      }
    }
  }
}

}  // namespace
}  // namespace regard
