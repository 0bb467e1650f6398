// Distances of a tile for tables with a row a distance, clipped: row clip(j − i, ±most) + most.    Shaw et al. 2018
#pragma once

#include <algorithm>
#include <array>

#include "attention/mechanism.h"

namespace regard {

// The rows of the table that a tile needs, [lo, lo + count), and numbers of a query by row.
template <class T>
class RelativeRows {
 public:
  RelativeRows(const Place& place, std::int64_t most) : place_(place), most_(most) {
    if (place.queries.count() == 0 || place.keys.count() == 0) return;
    lo_ = row(place.queries.end - 1, place.keys.begin);
    count_ = row(place.queries.begin, place.keys.end - 1) - lo_ + 1;
  }
  RowsOf<T> numbers() {
    return {memory_.data(), static_cast<std::size_t>(place_.queries.count()), static_cast<std::size_t>(count_), kMost};
  }
  template <class U>  // the rows of a table [2·most + 1, width]
  RowsOf<U> of(U* table, std::int64_t width) const {
    return {table + lo_ * width, static_cast<std::size_t>(count_), static_cast<std::size_t>(width),
            static_cast<std::size_t>(width)};
  }
  // To every pair the number of its distance: s_ij += numbers_ir.
  void spread(RowsOf<T> s) {
    const RowsOf<const T> from = numbers();
    for_each_run([&](std::size_t i, Run run) {
      T* const to = s.row(i) + run.key;
      const T* const own = from.row(i) + run.row;
      if (run.same) {
        for (std::size_t k = 0; k < run.count; ++k) to[k] += own[0];
      } else {
        for (std::size_t k = 0; k < run.count; ++k) to[k] += own[k];
      }
    });
  }
  // The other way: numbers_ir = Σ_j of p_ij, j at distance r.
  void add_up(RowsOf<const T> p) {
    const RowsOf<T> sums = numbers();
    for (std::size_t i = 0; i < sums.count; ++i) std::fill_n(sums.row(i), sums.width, T(0));
    for_each_run([&](std::size_t i, Run run) {
      const T* const from = p.row(i) + run.key;
      T* const own = sums.row(i) + run.row;
      if (run.same) {
        T sum = own[0];
        for (std::size_t k = 0; k < run.count; ++k) sum += from[k];
        own[0] = sum;
      } else {
        for (std::size_t k = 0; k < run.count; ++k) own[k] += from[k];
      }
    });
  }

 private:
  struct Run {  // keys of one query whose rows follow one another, or are all the same: those too far away
    std::size_t key, row, count;
    bool same;
  };
  template <class Each>
  void for_each_run(Each each) const {
    for (std::int64_t i = place_.queries.begin; i < place_.queries.end; ++i) {
      const std::int64_t at = i + place_.offset, begin = place_.keys.begin, end = place_.keys.end;
      const std::int64_t near = std::clamp(at - most_, begin, end), far = std::clamp(at + most_ + 1, near, end);
      const auto run = [&](std::int64_t from, std::int64_t to, bool same) {
        if (from == to) return;
        each(static_cast<std::size_t>(i - place_.queries.begin),
             Run{static_cast<std::size_t>(from - begin), static_cast<std::size_t>(row(i, from) - lo_),
                 static_cast<std::size_t>(to - from), same});
      };
      run(begin, near, true);
      run(near, far, false);
      run(far, end, true);
    }
  }
  static constexpr std::size_t kMost = kTallestTile + kKeyTile;
  std::int64_t row(std::int64_t query, std::int64_t key) const {
    return std::clamp(key - (query + place_.offset), -most_, most_) + most_;
  }

  const Place& place_;
  std::int64_t most_, lo_ = 0, count_ = 0;
  std::array<T, kTallestTile * kMost> memory_;
};

}  // namespace regard
