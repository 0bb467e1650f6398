// What there is to do for a call of attention, and where its numbers stand: the tensors as rows by item and head, the
// sequences of a batch and their blocks of queries, keys and values as the tiles want them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "attention/engine.h"
#include "attention/mechanism.h"
#include "base/check.h"
#include "tensor/arena.h"

namespace regard::schedule {

constexpr std::int64_t kQueryTile = 60;  // ten register blocks of a product: what a thread takes at a time
constexpr std::int64_t kQueryPart = 12;  // queries that share a view when they do not see all of a tile
constexpr std::int64_t kMostQueries = kQueryTile + kQueryPart;  // the last rows of a sequence join the tile before
constexpr std::int64_t kBackTile = kTallestTile;  // of a backward tile: what is added to keys and values is read less
constexpr std::int64_t kBackPart = 24;  // as many are scored at once, and share a view when they do not see all

using Cover = Scope::Cover;

inline std::size_t size(std::int64_t x) { return static_cast<std::size_t>(x); }

// Memory comes from an arena, or from one that only counts what would be taken.
struct CountedMemory {
  std::size_t used = 0;

  void* allocate(std::size_t bytes) {
    used += (bytes + 63) / 64 * 64;
    return nullptr;
  }
  Tensor make(const Shape& shape, DType type) {
    allocate(size(shape.size()) * bytes_of(type));
    return {};
  }
};

template <class T, class Memory>
T* allocate(Memory& memory, std::int64_t count) {
  return static_cast<T*>(memory.allocate(size(count) * sizeof(T)));
}

// Queries and the keys that belong to the same sequence.
struct Segment {
  Range queries, keys;
  std::int64_t panels = 0;  // where its packed keys start, in rows
  std::int64_t tile = 0;    // the number of its first tile
};

// What the forward pass leaves to the backward pass, if it is worth its room; null: not held.
template <class T>
struct Held {
  T* scores = nullptr;                            // [batch, heads, queries, keys], before bias and scopes
  std::uint8_t* kept = nullptr;                   // what dropout kept: [batch, heads, tiles, queries, kKeptBytes]
  bool knows_scores = false, knows_kept = false;  // they are there already

  Held known() const { return {scores, kept, scores != nullptr, kept != nullptr}; }
};

// One call as plain memory.
template <class T>
struct View {
  View(const AttendCall& c, const Tensor& values, const Held<T>& of_forward = {})
      : call(c),
        stages(c.mechanism->stages()),
        tiles(stages.score->tiles()),
        batch(c.batch),
        heads(c.sizes.heads),
        key_groups(c.k[1]),
        queries(c.queries),
        keys(c.keys),
        width(c.q[3]),
        key_width(c.k[3]),
        shares_queries(c.q[0] == 1 && c.batch != 1),
        shares_keys(c.k[0] == 1 && c.batch != 1),
        q(c.q.data<T>()),
        k(c.k.data<T>()),
        held(of_forward) {
    if (values.defined()) {
      v = values.data<T>();
      value_groups = values[1];
      value_width = values[3];
    }
    const Shape all = {batch, heads, queries, keys};
    if (c.theta.defined()) theta = c.theta.data<T>();
    if (c.theta.defined() && c.theta[0] != 1) theta_step = c.theta[1];
    if (c.table.defined()) table = c.table.data<T>();
    if (c.table.defined() && c.table[0] != 1) table_step = c.table[1];
    if (c.centres.defined()) centres = c.centres.data<T>();
    if (c.choices.defined()) choices = c.choices.data<std::int32_t>();
    for (const auto& scope : stages.scopes) {
      if (scope->gates()) gate = scope.get();
    }
    if (c.bias.defined()) {
      bias = c.bias.data<T>();
      const Tensor spread = c.bias.expand(all);
      for (int i = 0; i < 4; ++i) bias_steps[i] = spread.stride(i);
    }
    if (c.mask.defined()) {
      mask = c.mask.data<std::int8_t>();
      const Tensor spread = c.mask.expand(all);
      for (int i = 0; i < 4; ++i) mask_steps[i] = spread.stride(i);
    }
  }

  // Heads that share keys or values are a unit: what they need is prepared together, and their gradients added up in
  // order. A unit has one or more lists of keys and of values.
  std::int64_t units() const { return v == nullptr ? key_groups : std::min(key_groups, value_groups); }
  std::int64_t unit_heads() const { return units() == 0 ? 0 : heads / units(); }
  std::int64_t unit_keys() const { return units() == 0 ? 1 : std::max<std::int64_t>(1, key_groups / units()); }
  std::int64_t unit_values() const { return units() == 0 || v == nullptr ? 0 : value_groups / units(); }
  // Keys and values come in lists, one an item and group.
  std::int64_t key_list(std::int64_t item, std::int64_t head) const {
    return (shares_keys ? 0 : item) * key_groups + head / (heads / key_groups);
  }
  std::int64_t value_list(std::int64_t item, std::int64_t head) const {
    return item * value_groups + head / (heads / value_groups);
  }
  std::int64_t query_row(std::int64_t item, std::int64_t head, std::int64_t query) const {
    return ((shares_queries ? 0 : item) * heads + head) * queries + query;
  }
  RowsOf<const T> query_rows(std::int64_t item, std::int64_t head, Range range) const {
    return {q + query_row(item, head, range.begin) * width, size(range.count()), size(width), size(width)};
  }
  RowsOf<const T> key_rows(std::int64_t list, Range range) const {
    return {k + (list * keys + range.begin) * key_width, size(range.count()), size(key_width), size(key_width)};
  }
  RowsOf<const T> value_rows(std::int64_t list, Range range) const {
    return {v + (list * keys + range.begin) * value_width, size(range.count()), size(value_width), size(value_width)};
  }
  std::int64_t row(std::int64_t item, std::int64_t head, std::int64_t query) const {
    return (item * heads + head) * queries + query;
  }
  const T* theta_of(std::int64_t head) const { return theta == nullptr ? nullptr : theta + head * theta_step; }
  const T* table_of(std::int64_t head) const { return table == nullptr ? nullptr : table + head * table_step; }
  RandomKey key_of(const Place& place) const {  // of the head; each query has one of its own behind it
    std::uint64_t id;
    std::memcpy(&id, call.ids.data<std::int32_t>() + 2 * place.item, sizeof(id));
    return call.key.at(id).at(static_cast<std::uint64_t>(place.head));
  }

  const AttendCall& call;
  const Stages& stages;
  const PairTiles& tiles;
  std::int64_t batch, heads, key_groups, value_groups = 1, queries, keys, width, key_width, value_width = 0;
  bool shares_queries, shares_keys;  // all items have the same
  const T *q, *k, *v = nullptr, *theta = nullptr, *table = nullptr, *centres = nullptr, *bias = nullptr;
  Held<T> held;
  const Scope* gate = nullptr;
  const std::int8_t* mask = nullptr;
  std::int32_t* choices = nullptr;
  std::int64_t theta_step = 0, table_step = 0, bias_steps[4] = {}, mask_steps[4] = {};
};

// The sequences of each item, and how the work is cut.
struct Plan {
  struct Block {
    std::int64_t item;
    const Segment* segment;
    Range queries;
  };
  Segment* segments = nullptr;            // of all items, one after another
  std::int64_t* first_segment = nullptr;  // [batch + 1]
  Block* blocks = nullptr;                // of one head each, the same for all heads
  std::int64_t* first_block = nullptr;    // [batch + 1]
  std::int64_t block_count = 0;
  std::int64_t panel_rows = 0, tiles = 0;  // of the item that has most
  std::int64_t longest = 0;                // keys of the longest sequence
};

inline std::int64_t blocks_of(Range queries) {
  return queries.count() == 0 ? 0
                              : std::max<std::int64_t>(1, (queries.count() + kQueryTile - kQueryPart - 1) / kQueryTile);
}

template <class T>
Plan make_plan(const View<T>& view, Arena& arena) {
  Plan plan;
  const std::int32_t* lengths = view.call.lengths.defined() ? view.call.lengths.template data<std::int32_t>() : nullptr;
  const std::int32_t* documents =
      view.call.documents.defined() ? view.call.documents.template data<std::int32_t>() : nullptr;
  const std::int64_t most = documents == nullptr ? view.batch : view.batch * view.keys;
  plan.segments = allocate<Segment>(arena, most);
  plan.first_segment = allocate<std::int64_t>(arena, view.batch + 1);
  std::int64_t count = 0;
  for (std::int64_t item = 0; item < view.batch; ++item) {
    plan.first_segment[item] = count;
    const std::int64_t length = lengths == nullptr ? view.keys : lengths[item];
    std::int64_t panels = 0, tiles = 0;
    const auto add = [&](Range queries, Range keys) {
      plan.segments[count++] = {queries, keys, panels, tiles};
      panels += (keys.count() + 15) / 16 * 16;
      tiles += (keys.count() + kKeyTile - 1) / kKeyTile;
      plan.longest = std::max(plan.longest, keys.count());
      plan.block_count += blocks_of(queries);
    };
    if (documents == nullptr) {
      add({0, view.queries}, {0, length});
    } else {
      const std::int32_t* ids = documents + item * view.keys;
      for (std::int64_t begin = 0, end; begin < view.keys; begin = end) {
        for (end = begin + 1; end < view.keys && ids[end] == ids[begin];) ++end;
        if (ids[begin] >= 0) add({begin, end}, {begin, std::clamp(length, begin, end)});
      }
    }
    plan.panel_rows = std::max(plan.panel_rows, panels);
    plan.tiles = std::max(plan.tiles, tiles);
  }
  plan.first_segment[view.batch] = count;
  plan.blocks = allocate<Plan::Block>(arena, plan.block_count);
  plan.first_block = allocate<std::int64_t>(arena, view.batch + 1);
  std::int64_t block = 0;
  for (std::int64_t item = 0; item < view.batch; ++item) {
    plan.first_block[item] = block;
    for (std::int64_t s = plan.first_segment[item]; s < plan.first_segment[item + 1]; ++s) {
      const Segment& segment = plan.segments[s];
      for (std::int64_t i = segment.queries.begin, end = 0; i < segment.queries.end; i = end) {
        end = i + kMostQueries >= segment.queries.end ? segment.queries.end : i + kQueryTile;
        plan.blocks[block++] = {item, &segment, {i, end}};
      }
    }
  }
  plan.first_block[view.batch] = block;
  return plan;
}

// Rows of keys or values of some heads ("slots"), ready for tiles: in panels of 16, and whether a tile is finite.
template <class T>
struct Packed {
  float* panels = nullptr;
  bool* finite = nullptr;  // null: nobody asks
  std::int64_t width = 0, panel_rows = 0, tiles = 0;

  template <class Memory>
  Packed(const Plan& plan, std::int64_t slots, std::int64_t row_width, bool packs, bool checks, Memory& arena)
      : width(row_width), panel_rows(plan.panel_rows), tiles(plan.tiles) {
    if (packs && std::is_same_v<T, float>) panels = allocate<float>(arena, slots * panel_rows * width);
    if (checks) finite = allocate<bool>(arena, slots * tiles);
  }
  void pack(const Segment& segment, std::int64_t slot, RowsOf<const T> from) const {  // the rows of the segment
    for (std::int64_t t = 0; t * kKeyTile < segment.keys.count(); ++t) {
      const std::int64_t begin = t * kKeyTile, end = std::min(begin + kKeyTile, segment.keys.count());
      const RowsOf<const T> rows{from.row(size(begin)), size(end - begin), from.width, from.stride};
      if (finite != nullptr) finite[slot * tiles + segment.tile + t] = all_finite(rows);
      if constexpr (std::is_same_v<T, float>) {
        if (panels != nullptr) {
          regard::pack(as_matrix(rows).transposed(), panels + (slot * panel_rows + segment.panels + begin) * width);
        }
      }
    }
  }
  // `from` are rows of tile t, the first of them `skipped` behind its beginning, a multiple of 16.
  KeysOf<T> tile(const Segment& segment, std::int64_t slot, std::int64_t t, std::int64_t skipped,
                 RowsOf<const T> from) const {
    KeysOf<T> keys{from, {}, finite != nullptr && finite[slot * tiles + segment.tile + t]};
    if (panels != nullptr) {
      const std::int64_t row = slot * panel_rows + segment.panels + t * kKeyTile + skipped;
      keys.packed = {panels + row * width, size(width), from.count};
    }
    return keys;
  }
};

// The keys as the score wants them, in slots that hold a unit each.
template <class T>
struct PreparedKeys {
  template <class Memory>
  PreparedKeys(const View<T>& view, const Plan& plan, std::int64_t slots, bool backward, Memory& arena)
      : packed(plan, slots * view.unit_keys(), view.key_width, view.tiles.is_product() && !view.held.knows_scores,
               backward, arena) {
    if (view.tiles.prepares_keys()) {
      prepared = allocate<T>(arena, slots * view.unit_keys() * view.keys * view.key_width);
    }
  }
  void prepare(const View<T>& view, const Plan& plan, std::int64_t slot, std::int64_t item, std::int64_t unit) const {
    for (std::int64_t i = 0; i < view.unit_keys(); ++i) {
      const std::int64_t head = unit * view.unit_heads() + i * (view.heads / view.key_groups);
      for (std::int64_t s = plan.first_segment[item]; s < plan.first_segment[item + 1]; ++s) {
        const Segment& segment = plan.segments[s];
        const RowsOf<const T> to = rows_of(view, slot, item, head, segment.keys);
        if (prepared != nullptr) {
          view.tiles.prepare_keys(view.call.sizes, view.key_rows(view.key_list(item, head), segment.keys),
                                  RowsOf<T>{const_cast<T*>(to.data), to.count, to.width, to.stride});
        }
        packed.pack(segment, slot * view.unit_keys() + i, to);
      }
    }
  }
  std::int64_t place(const View<T>& view, std::int64_t slot, std::int64_t head) const {
    return slot * view.unit_keys() + head / (view.heads / view.key_groups) % view.unit_keys();
  }
  RowsOf<const T> rows_of(const View<T>& view, std::int64_t slot, std::int64_t item, std::int64_t head,
                          Range range) const {
    RowsOf<const T> rows = view.key_rows(view.key_list(item, head), range);
    if (prepared != nullptr) {
      rows.data = prepared + (place(view, slot, head) * view.keys + range.begin) * view.key_width;
    }
    return rows;
  }

  T* prepared = nullptr;
  Packed<T> packed;
};

template <class T>
void prepare_values(const View<T>& view, const Plan& plan, const Packed<T>& values, std::int64_t slot,
                    std::int64_t item, std::int64_t unit) {
  for (std::int64_t i = 0; i < view.unit_values(); ++i) {
    const std::int64_t list = item * view.value_groups + unit * view.unit_values() + i;
    for (std::int64_t s = plan.first_segment[item]; s < plan.first_segment[item + 1]; ++s) {
      const Segment& segment = plan.segments[s];
      values.pack(segment, slot * view.unit_values() + i, view.value_rows(list, segment.keys));
    }
  }
}

}  // namespace regard::schedule
