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
  // each(i, j, number of the row among those of the tile)
  template <class Each>
  void for_each_pair(Each each) const {
    for (std::int64_t i = place_.queries.begin; i < place_.queries.end; ++i) {
      for (std::int64_t j = place_.keys.begin; j < place_.keys.end; ++j) {
        each(static_cast<std::size_t>(i - place_.queries.begin), static_cast<std::size_t>(j - place_.keys.begin),
             static_cast<std::size_t>(row(i, j) - lo_));
      }
    }
  }
  void clear() {
    const RowsOf<T> all = numbers();
    for (std::size_t i = 0; i < all.count; ++i) std::fill_n(all.row(i), all.width, T(0));
  }

 private:
  static constexpr std::size_t kMost = kTallestTile + kKeyTile;
  std::int64_t row(std::int64_t query, std::int64_t key) const {
    return std::clamp(key - (query + place_.offset), -most_, most_) + most_;
  }

  const Place& place_;
  std::int64_t most_, lo_ = 0, count_ = 0;
  std::array<T, kTallestTile * kMost> memory_;
};

}  // namespace regard
