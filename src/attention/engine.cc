// The schedules of attention: forward, backward and weights are three drivers over the same stages. Tiles have 128
// keys, counted from the first of their own sequence, so that what a row computes depends on nothing but its sequence;
// a row knows nothing of the rows beside it, so their number is a matter of speed. Only peak and τ of a row are kept;
// the other two passes make the scores again.
//
// One tile's journey: score.forward -> bias -> scopes -> align -> dropout -> context += p·v, for all queries of a block
// where nothing is hidden; else a few at a time, and of the keys only what they see.
#include "attention/engine.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "attention/edits.h"
#include "attention/mechanism.h"
#include "autograd/by_type.h"
#include "autograd/kernel_calls.h"
#include "base/check.h"
#include "base/float_mode.h"
#include "base/pool.h"
#include "kernels/dropout.h"
#include "tensor/arena.h"

namespace regard {
namespace {

constexpr std::int64_t kQueryTile = 60;  // ten register blocks of a product: what a thread takes at a time
constexpr std::int64_t kQueryPart = 12;  // queries that share a view when they do not see all of a tile
constexpr std::int64_t kMostQueries = kQueryTile + kQueryPart;  // the last rows of a sequence join the tile before
constexpr std::int64_t kBackTile = kTallestTile;  // of a backward tile: what is added to keys and values is read less
constexpr std::int64_t kBackPart = 24;  // as many are scored at once, and share a view when they do not see all

using Cover = Scope::Cover;

std::size_t size(std::int64_t x) { return static_cast<std::size_t>(x); }

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

// One call as plain memory.
template <class T>
struct View {
  View(const AttendCall& c, const Tensor& values)
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
        k(c.k.data<T>()) {
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
      : packed(plan, slots * view.unit_keys(), view.key_width, view.tiles.is_product(), backward, arena) {
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

template <class T>
Cover mask_cover(const View<T>& view, const Place& place) {
  bool any = false, all = true;
  for (std::int64_t i = place.queries.begin; i < place.queries.end; ++i) {
    const std::int8_t* row =
        view.mask + place.item * view.mask_steps[0] + place.head * view.mask_steps[1] + i * view.mask_steps[2];
    if (view.mask_steps[3] == 1) {
      const std::int8_t *begin = row + place.keys.begin, *end = row + place.keys.end;
      all = all && std::memchr(begin, 0, size(place.keys.count())) == nullptr;
      any = any || std::find_if(begin, end, [](std::int8_t seen) { return seen != 0; }) != end;
    } else {
      for (std::int64_t j = place.keys.begin; j < place.keys.end; ++j) {
        const bool seen = row[j * view.mask_steps[3]] != 0;
        any |= seen;
        all &= seen;
      }
    }
    if (any && !all) return Cover::kSome;
  }
  return !any ? Cover::kNone : all ? Cover::kAll : Cover::kSome;
}

template <class T>
void mask_select(const View<T>& view, const Place& place, RowsOf<T> s) {
  for (std::size_t i = 0; i < s.count; ++i) {
    const std::int8_t* row = view.mask + place.item * view.mask_steps[0] + place.head * view.mask_steps[1] +
                             (place.queries.begin + static_cast<std::int64_t>(i)) * view.mask_steps[2] +
                             place.keys.begin * view.mask_steps[3];
    if (view.mask_steps[3] == 1) {
      select_row(row, s.width, s.row(i));
      continue;
    }
    for (std::size_t j = 0; j < s.width; ++j) {
      if (row[static_cast<std::int64_t>(j) * view.mask_steps[3]] == 0) s.row(i)[j] = kHidden<T>;
    }
  }
}

template <class T>
void hide(RowsOf<T> s) {
  for (std::size_t i = 0; i < s.count; ++i) std::fill_n(s.row(i), s.width, kHidden<T>);
}
template <class T>
void clear(RowsOf<T> x) {
  if (x.stride == x.width) x = {x.data, 1, x.count * x.width, x.count * x.width};
  for (std::size_t i = 0; i < x.count; ++i) std::fill_n(x.row(i), x.width, T(0));
}

// A block of queries against the tiles of its keys, which are prepared in a slot.
template <class T>
struct BlockWork {
  BlockWork(const View<T>& v, const PreparedKeys<T>& k, std::int64_t in_slot, const Plan::Block& block,
            std::int64_t head)
      : view(v), keys(k), slot(in_slot), segment(*block.segment) {
    place = {block.item,    head,         &v.call.sizes,
             block.queries, segment.keys, segment.keys,
             v.call.offset, nullptr,      std::is_same_v<T, double>};
    if (v.centres != nullptr) place.centres = v.centres + v.row(block.item, head, 0);
    visible = seen_by(place);
    if (visible.count() == 0) visible = {segment.keys.begin, segment.keys.begin};
    first_tile = (visible.begin - segment.keys.begin) / kKeyTile;
    begin = segment.keys.begin + first_tile * kKeyTile;
  }

  std::int64_t span() const { return visible.end - begin; }  // columns of a whole row
  std::size_t rows() const { return size(place.queries.count()); }
  RowsOf<const T> query_rows() const { return view.query_rows(place.item, place.head, place.queries); }

  // each(tile's place, its number, cover) for all tiles with visible keys, or with `skipped` for the others, too.
  template <class Each>
  void for_each_tile(bool skipped, Each each) const {
    for (std::int64_t at = begin, t = first_tile; at < visible.end; at += kKeyTile, ++t) {
      Place tile = place;
      tile.keys = {at, std::min(at + kKeyTile, visible.end)};
      const Cover cover = cover_of(tile);
      if (skipped || cover != Cover::kNone) each(tile, t, cover);
    }
  }

  // each(place, number of the tile, cover) for the parts of a tile that have visible keys: `count` queries each, or if
  // nothing is hidden `most`. Of the keys only panels that are seen.
  template <class Each>
  void for_each_part(const Place& tile, std::int64_t t, Cover cover, std::int64_t count, std::int64_t most,
                     Each each) const {
    const std::int64_t step = cover == Cover::kAll ? most : count;
    for (std::int64_t i = tile.queries.begin; i < tile.queries.end; i += step) {
      Place part = tile;
      part.queries = {i, std::min(i + step, tile.queries.end)};
      if (cover == Cover::kAll) {
        each(part, t, cover);
        continue;
      }
      const Range seen = seen_by(part);
      const std::int64_t skipped = std::max<std::int64_t>(0, seen.begin - tile.keys.begin) / 16 * 16;
      const std::int64_t used = std::max<std::int64_t>(0, seen.end - tile.keys.begin + 15) / 16 * 16;
      part.keys = {tile.keys.begin + skipped, std::min(tile.keys.begin + used, tile.keys.end)};
      if (part.keys.count() == 0) continue;
      const Cover own = cover_of(part);
      if (own != Cover::kNone) each(part, t, own);
    }
  }

  KeysOf<T> keys_of(const Place& tile, std::int64_t t) const {
    return keys.packed.tile(segment, keys.place(view, slot, tile.head), t, skipped_in(tile, t),
                            keys.rows_of(view, slot, tile.item, tile.head, tile.keys));
  }
  KeysOf<T> values_of(const Packed<T>& values, const Place& tile, std::int64_t t) const {
    const std::int64_t list = view.value_list(tile.item, tile.head);
    const std::int64_t place_in =
        slot * view.unit_values() + list % view.value_groups % std::max<std::int64_t>(1, view.unit_values());
    return values.tile(segment, place_in, t, skipped_in(tile, t), view.value_rows(list, tile.keys));
  }

  void score(const Place& tile, std::int64_t t, Cover cover, RowsOf<const T> q, RowsOf<T> s,
             Ahead* ahead = nullptr) const {
    if (view.stages.align->needs_scores()) {
      KeysOf<T> k = keys_of(tile, t);
      k.ahead = ahead;
      view.tiles.forward(tile, q, k, view.theta_of(tile.head), s);
    } else {
      clear(s);
    }
    if (view.bias != nullptr && view.bias_steps[3] == 1) {
      const RowsOf<const T> rows = {view.bias + bias_at(tile, 0), s.count, s.width, size(view.bias_steps[2])};
      add_scaled_copy(rows, T(1), s);
    } else if (view.bias != nullptr) {
      for (std::size_t i = 0; i < s.count; ++i) {
        const T* from = view.bias + bias_at(tile, i);
        for (std::size_t j = 0; j < s.width; ++j)
          s.row(i)[j] += from[static_cast<std::int64_t>(j) * view.bias_steps[3]];
      }
    }
    if (cover == Cover::kAll) return;
    for (const auto& scope : view.stages.scopes) scope->add(tile, s);
    if (view.mask != nullptr) mask_select(view, tile, s);
  }

  std::int64_t bias_at(const Place& tile, std::size_t i) const {
    return tile.item * view.bias_steps[0] + tile.head * view.bias_steps[1] +
           (tile.queries.begin + static_cast<std::int64_t>(i)) * view.bias_steps[2] +
           tile.keys.begin * view.bias_steps[3];
  }

  // Dropout of a tile. Tells in `kept`, if that is not null, what stays, kKeptBytes a row.
  void drop(const Place& tile, RowsOf<T> p, std::uint8_t* kept = nullptr) const {
    if (view.call.dropout == 0) return;
    const RandomKey key = view.key_of(tile);
    // By where a query stands, so that one query at a time drops what the whole drops.
    const auto query = static_cast<std::uint64_t>(tile.queries.begin + tile.offset),
               first = static_cast<std::uint64_t>(tile.keys.begin);
    if (drops_tiles()) return drop_tile(p, view.call.dropout, key, query, first, kept);
    for (std::size_t i = 0; i < p.count; ++i) {
      dropout(p.row(i), p.row(i), p.width, view.call.dropout, key.at(query + i), first);
    }
  }
  void drop_again(const Place& tile, RowsOf<T> p, const std::uint8_t* kept) const {
    if (view.call.dropout == 0) return;
    if (!drops_tiles()) return drop(tile, p);
    keep_tile(p, view.call.dropout, kept);
  }
  // Elements are counted from the first key of the item, tiles from that of the sequence.
  bool drops_tiles() const { return segment.keys.begin % 16 == 0; }

  void gate(const Place& tile, RowsOf<T> p) const {
    if (view.gate != nullptr) view.gate->gate(tile, p);
  }

  // Of the i-th query, whose row of weights has the keys from `begin` on. Packed or alone, a document is drawn alike.
  RowNoise noise(std::size_t i) const {
    const std::int64_t query = place.queries.begin + place.offset - segment.keys.begin;
    return {view.key_of(place).at(static_cast<std::uint64_t>(query) + i), begin - segment.keys.begin};
  }
  std::span<std::int32_t> choices(const Place& tile, std::size_t i) const {
    const std::int64_t samples = view.call.choices[3];
    const std::int64_t row = view.row(tile.item, tile.head, tile.queries.begin) + static_cast<std::int64_t>(i);
    return {view.choices + row * samples, size(samples)};
  }
  void read_chosen(const Place& tile, RowsOf<T> p) const {  // p becomes the weights
    for (std::size_t i = 0; i < p.count; ++i) {
      read_choices<T>({p.row(i), {tile.keys.begin, tile.keys.begin + static_cast<std::int64_t>(p.width)}},
                      choices(tile, i));
    }
  }
  // Whole rows of weights: some keys are chosen by them and have them all, if that is what the align does.
  void choose(RowsOf<T> p) const {
    if (view.choices == nullptr) return;
    for (std::size_t i = 0; i < p.count; ++i) {
      const ChoiceRow<T> row{p.row(i), {begin, visible.end}};
      if (view.call.draws) {
        draw_keys(row, noise(i), choices(place, i));
      } else {
        likeliest_key(row, choices(place, i));
      }
      read_choices<T>(row, choices(place, i));
    }
  }
  // Back from there: s becomes the weights, dp becomes ds. Who does not draw has no slope.
  void unchoose(RowsOf<T> s, const T* peak, const T* tau, RowsOf<T> dp) const {
    const Choosing& how = *view.stages.align->choosing();
    view.stages.align->weigh(s, peak, tau);
    for (std::size_t i = 0; i < s.count; ++i) {
      const ChoiceRow<T> row{s.row(i), {begin, visible.end}};
      if (!view.call.draws) {
        read_choices<T>(row, choices(place, i));
        std::fill_n(dp.row(i), dp.width, T(0));
      } else if (how.estimator == Choosing::Estimator::kGumbel) {
        gumbel_pullback<T>(row, noise(i), choices(place, i), how.temperature, dp.row(i));
      } else {
        const std::int64_t at = place.item * view.queries + place.queries.begin + static_cast<std::int64_t>(i);
        reinforce_pullback<T>(row, choices(place, i), static_cast<double>(view.call.advantage.template data<T>()[at]),
                              static_cast<double>(view.call.entropy), dp.row(i));
      }
    }
  }

  // The tile's part of a buffer of whole rows, or all of a buffer for one tile.
  RowsOf<T> part(T* buffer, std::int64_t stride, const Place& tile, bool whole) const {
    return {buffer + (whole ? tile.keys.begin - begin : 0), rows(), size(tile.keys.count()), size(stride)};
  }

  const View<T>& view;
  const PreparedKeys<T>& keys;
  const std::int64_t slot;
  const Segment& segment;
  Place place;
  Range visible;
  std::int64_t first_tile, begin;

 private:
  std::int64_t skipped_in(const Place& tile, std::int64_t t) const {
    return tile.keys.begin - segment.keys.begin - t * kKeyTile;
  }
  Range seen_by(const Place& queries) const {
    Range seen = segment.keys;
    Place block = queries;
    block.keys = segment.keys;
    for (const auto& scope : view.stages.scopes) {
      if (view.call.staged) break;
      const Range range = scope->visible(block);
      seen = {std::max(seen.begin, range.begin), std::min(seen.end, range.end)};
    }
    return seen;
  }
  Cover cover_of(const Place& tile) const {
    if (view.call.staged) return Cover::kSome;  // so that no scope is left out
    Cover cover = Cover::kAll;
    for (const auto& scope : view.stages.scopes) {
      const Cover each = scope->cover(tile);
      if (each == Cover::kNone) return each;
      if (each == Cover::kSome) cover = each;
    }
    if (view.mask != nullptr) {
      const Cover each = mask_cover(view, tile);
      if (each != Cover::kAll) return each;
    }
    return cover;
  }
};

// Whether a block needs its rows whole: then all tiles of them are held at once.
template <class T>
bool needs_whole_rows(const View<T>& view) {
  return !view.stages.align->streams() || view.stages.read->is_pointer() || view.call.staged;
}

// The memory of a thread: the scores of a part forward and of a tile backward, or whole rows of as many queries as
// share them.
template <class T>
struct Buffers {
  Buffers(const View<T>& view, const Plan& plan, bool goes_back)
      : backward(goes_back),
        whole(needs_whole_rows(view)),
        most(backward && (!whole || view.call.staged) ? kBackTile : kMostQueries),
        stride(whole ? std::max<std::int64_t>(1, (plan.longest + 15) / 16 * 16) : kKeyTile),
        query_size((most * view.width + 15) / 16 * 16),
        score_size(most * stride),
        factor_size((most + 15) / 16 * 16),
        extra_size(view.gate != nullptr || view.stages.read->is_pointer() ? score_size : 0),
        // Who goes stage by stage keeps the factors of every tile.
        total((backward ? 2 : 1) * (query_size + score_size) + extra_size +
              factor_size * (view.call.staged ? stride / kKeyTile + 1 : 1)) {}
  void use(T* memory) {
    q = memory;
    s = q + query_size;
    extra = s + score_size;
    dq = extra + extra_size;
    dp = dq + query_size;
    factor = backward ? dp + score_size : dq;
  }
  RowsOf<T> queries(T* at, std::size_t count, std::int64_t width) const {
    return {at, count, size(width), size(width)};
  }

  bool backward, whole;
  std::int64_t most, stride, query_size, score_size, factor_size, extra_size, total;
  T *q = nullptr, *s = nullptr, *extra = nullptr, *factor = nullptr, *dq = nullptr, *dp = nullptr;
  Ahead* ahead = nullptr;
};

// What a forward pass holds beside its result: so many units prepared, and the memory of every thread.
template <class T>
struct ForwardRoom {
  template <class Memory>
  ForwardRoom(const View<T>& view, const Plan& plan, Memory& arena)
      : workers(threads()),
        slots(std::min(view.batch * view.units(), workers)),
        keys(view, plan, slots, false, arena),
        values(plan, slots * view.unit_values(), view.value_width, false, true, arena),
        buffers(view, plan, false),
        memory(allocate<T>(arena, workers * buffers.total)) {}

  std::int64_t workers, slots;
  PreparedKeys<T> keys;
  Packed<T> values;
  Buffers<T> buffers;
  T* memory;
};

// The same of a backward pass. What shares a gradient is one piece of work, done in the order of heads, items and
// queries.
template <class T>
struct BackwardRoom {
  template <class Memory>
  BackwardRoom(const View<T>& view, const Plan& plan, bool bias_learns, Memory& arena)
      : all_items(view.shares_keys || view.shares_queries || (bias_learns && view.bias_steps[0] == 0)),
        all_heads(bias_learns && view.bias_steps[1] == 0),
        unit_pieces(all_heads ? 1 : view.units()),
        pieces((all_items ? 1 : view.batch) * unit_pieces),
        slots(std::min<std::int64_t>(pieces, threads())),
        key_numbers(view.unit_keys() * view.keys * view.key_width),
        value_numbers(view.unit_values() * view.keys * view.value_width),
        keys(view, plan, slots, true, arena),
        values(plan, slots * view.unit_values(), view.value_width, true, false, arena),
        buffers(view, plan, true),
        memory(allocate<T>(arena, slots * buffers.total)) {
    if (view.tiles.prepares_keys()) d_prepared = allocate<T>(arena, slots * key_numbers);
  }

  bool all_items, all_heads;
  std::int64_t unit_pieces, pieces, slots, key_numbers, value_numbers;  // numbers of a unit
  PreparedKeys<T> keys;
  Packed<T> values;
  Buffers<T> buffers;
  T *memory, *d_prepared = nullptr;
};

// What is learned by all items has a gradient of each, added up in their order.
Shape part_shape(const AttendCall& call, const Tensor& learned) { return {call.batch, call.sizes.heads, learned[1]}; }

// What a call keeps of its rows. `memory` makes tensors.
template <class Memory>
void make_state(AttendCall& call, DType type, Memory& memory) {
  const Choosing* const choosing = call.mechanism->stages().align->choosing();
  const std::int64_t heads = call.sizes.heads;
  call.ids = memory.make({call.batch, 2}, DType::kI32);
  call.peaks = memory.make({call.batch, heads, call.queries}, type);
  call.taus = memory.make({call.batch, heads, call.queries}, type);
  if (choosing == nullptr) return;
  if (call.draws || choosing->largest) {
    call.choices = memory.make({call.batch, heads, call.queries, call.draws ? choosing->samples : 1}, DType::kI32);
  }
  if (call.draws && choosing->estimator == Choosing::Estimator::kReinforce) {
    call.advantage = memory.make({call.batch, call.queries}, type);
  }
}

template <class T>
RowsOf<T> rows_from(RowsOf<T> x, std::int64_t first, std::size_t count) {
  return {x.row(size(first)), count, x.width, x.stride};
}

template <class T>
void copy_rows(RowsOf<const T> from, RowsOf<T> to) {
  for (std::size_t i = 0; i < from.count; ++i) std::copy_n(from.row(i), from.width, to.row(i));
}

// Peak and τ of whole rows; of an align that streams, tile by tile as it does without whole rows.
template <class T>
void solve(const BlockWork<T>& work, const Buffers<T>& at, RowsOf<T> whole, T* peak, T* tau) {
  const Align& align = *work.view.stages.align;
  if (!align.streams()) return align.solve(whole, peak, tau);
  std::fill_n(peak, work.rows(), kHidden<T>);
  std::fill_n(tau, work.rows(), T(0));
  work.for_each_tile(false, [&](const Place& tile, std::int64_t, Cover) {
    const RowsOf<T> copy = work.part(at.extra, at.stride, tile, true);
    copy_rows(RowsOf<const T>(work.part(at.s, at.stride, tile, true)), copy);
    align.absorb(copy, peak, tau, at.factor);
  });
  align.settle(work.rows(), peak, tau, at.factor);
}

template <class T>
void forward_block(const BlockWork<T>& work, const Packed<T>& values, Buffers<T> at, T* context, T* peaks, T* taus) {
  const View<T>& view = work.view;
  const Align& align = *view.stages.align;
  const std::int64_t first = view.row(work.place.item, work.place.head, work.place.queries.begin);
  const bool pointer = view.stages.read->is_pointer();
  const std::int64_t out_width = pointer ? view.keys : view.value_width;
  const RowsOf<T> out{context + first * out_width, work.rows(), size(out_width), size(out_width)};
  T *peak = peaks + first, *tau = taus + first;
  const RowsOf<T> q = at.queries(at.q, work.rows(), view.width);
  view.tiles.prepare_queries(view.call.sizes, work.query_rows(), q);
  const auto read = [&](const Place& tile, std::int64_t t, RowsOf<T> p, RowsOf<T> to, bool fresh) {
    work.gate(tile, p);
    work.drop(tile, p);
    if (pointer) {
      return copy_rows(RowsOf<const T>(p), RowsOf<T>{to.data + tile.keys.begin, to.count, p.width, to.stride});
    }
    const KeysOf<T> v = work.values_of(values, tile, t);
    selected_product(as_matrix(RowsOf<const T>(p)), v.rows, v.finite, to, fresh, at.ahead);
    if (view.table != nullptr) view.stages.read->forward(tile, p, view.table_of(tile.head), to);
  };
  if (!at.whole) {
    std::fill_n(peak, work.rows(), kHidden<T>);
    std::fill_n(tau, work.rows(), T(0));
    bool touched[kMostQueries / kQueryPart] = {};  // which parts of the queries have read something
    const auto clear_untouched = [&] {
      for (std::int64_t i = 0; i * kQueryPart < work.place.queries.count(); ++i) {
        const std::size_t first_row = size(i * kQueryPart), rest = work.rows() - first_row;
        if (!touched[i]) clear(rows_from(out, i * kQueryPart, std::min(rest, size(kQueryPart))));
        touched[i] = true;
      }
    };
    work.for_each_tile(false, [&](const Place& whole, std::int64_t tile_number, Cover whole_cover) {
      const bool together = whole_cover == Cover::kAll;
      if (together && std::any_of(touched, std::end(touched), [](bool each) { return each; })) clear_untouched();
      work.for_each_part(whole, tile_number, whole_cover, kQueryPart, kMostQueries,
                         [&](const Place& part, std::int64_t t, Cover cover) {
                           const std::int64_t row = part.queries.begin - work.place.queries.begin;
                           const std::size_t count = size(part.queries.count());
                           const bool fresh = !touched[row / kQueryPart];
                           const RowsOf<T> s{at.s, count, size(part.keys.count()), size(at.stride)};
                           const RowsOf<T> to = rows_from(out, row, count);
                           work.score(part, t, cover, rows_from(q, row, count), s, at.ahead);
                           align.absorb(s, peak + row, tau + row, at.factor);
                           if (!fresh) scale_rows(to, at.factor);
                           read(part, t, s, to, fresh);
                           touched[row / kQueryPart] = true;
                         });
      if (together) std::fill(touched, std::end(touched), true);
    });
    clear_untouched();
    align.settle(work.rows(), peak, tau, at.factor);
    scale_rows(out, at.factor);
    return;
  }
  work.for_each_tile(true, [&](const Place& tile, std::int64_t t, Cover cover) {
    const RowsOf<T> s = work.part(at.s, at.stride, tile, true);
    if (cover == Cover::kNone) return hide(s);
    work.score(tile, t, cover, q, s);
  });
  const RowsOf<T> whole{at.s, work.rows(), size(work.span()), size(at.stride)};
  solve(work, at, whole, peak, tau);
  align.weigh(whole, peak, tau);
  work.choose(whole);
  bool fresh = !pointer;  // nothing is read yet
  if (pointer) clear(out);
  work.for_each_tile(false, [&](const Place& tile, std::int64_t t, Cover) {
    read(tile, t, work.part(at.s, at.stride, tile, true), out, fresh);
    fresh = false;
  });
  if (fresh) clear(out);
}

// The same stage after stage over whole rows, with nothing skipped: what the passes above have to agree with, bit for
// bit. Softmax still goes from tile to tile, because the order of its sum is part of its bits.
template <class T>
void staged_forward_block(const BlockWork<T>& work, const Packed<T>& values, Buffers<T> at, T* context, T* peaks,
                          T* taus) {
  const View<T>& view = work.view;
  const Align& align = *view.stages.align;
  const std::int64_t first = view.row(work.place.item, work.place.head, work.place.queries.begin);
  const RowsOf<T> out{context + first * view.value_width, work.rows(), size(view.value_width), size(view.value_width)};
  T *peak = peaks + first, *tau = taus + first;
  const auto factor_of = [&](std::int64_t t) { return at.factor + at.factor_size * (t - work.first_tile); };
  const auto part = [&](const Place& tile) { return work.part(at.s, at.stride, tile, true); };

  const RowsOf<T> q = at.queries(at.q, work.rows(), view.width);
  view.tiles.prepare_queries(view.call.sizes, work.query_rows(), q);
  work.for_each_tile(
      true, [&](const Place& tile, std::int64_t t, Cover cover) { work.score(tile, t, cover, q, part(tile)); });

  if (align.streams()) {
    std::fill_n(peak, work.rows(), kHidden<T>);
    std::fill_n(tau, work.rows(), T(0));
    work.for_each_tile(
        true, [&](const Place& tile, std::int64_t t, Cover) { align.absorb(part(tile), peak, tau, factor_of(t)); });
  } else {
    const RowsOf<T> whole{at.s, work.rows(), size(work.span()), size(at.stride)};
    align.solve(whole, peak, tau);
    align.weigh(whole, peak, tau);
    work.choose(whole);
  }
  work.for_each_tile(true, [&](const Place& tile, std::int64_t, Cover) {
    work.gate(tile, part(tile));
    work.drop(tile, part(tile));
  });

  clear(out);
  work.for_each_tile(true, [&](const Place& tile, std::int64_t t, Cover) {
    if (align.streams()) scale_rows(out, factor_of(t));
    const KeysOf<T> v = work.values_of(values, tile, t);
    selected_product(as_matrix(RowsOf<const T>(part(tile))), v.rows, v.finite, out);
    if (view.table != nullptr) view.stages.read->forward(tile, part(tile), view.table_of(tile.head), out);
  });
  if (!align.streams()) return;
  align.settle(work.rows(), peak, tau, at.factor);
  scale_rows(out, at.factor);
}

// Where gradients go; all is added to.
template <class T>
struct Outlets {
  T *dq, *dk, *dv;    // as q, k and v; dk as the score prepared the keys
  bool add_dq;        // else dq holds nothing yet
  T *theta, *table;   // of this item, [heads, …]; null: none
  T *bias, *centres;  // as these; null: nobody wants it
};

// Σ_j p_ij·dp_ij of a pointer's rows: where a weight is 0, nobody looks at its gradient.
template <class T>
void sum_products(RowsOf<const T> dy, RowsOf<const T> p, Range keys, T* to) {
  for (std::size_t i = 0; i < p.count; ++i) {
    double sum = 0;
    for (std::int64_t j = keys.begin; j < keys.end; ++j) {
      const T weight = p.row(i)[j];
      if (weight != 0) sum += static_cast<double>(weight) * static_cast<double>(dy.row(i)[j]);
    }
    to[i] = static_cast<T>(sum);
  }
}

template <class T>
void backward_block(const BlockWork<T>& work, const Packed<T>& values, Buffers<T> at, const T* context,
                    const T* d_context, const T* peaks, const T* taus, const Outlets<T>& to) {
  const View<T>& view = work.view;
  const Stages& stages = view.stages;
  const Align& align = *stages.align;
  const std::int64_t first = view.row(work.place.item, work.place.head, work.place.queries.begin);
  const bool pointer = stages.read->is_pointer();
  const std::int64_t out_width = pointer ? view.keys : view.value_width;
  const RowsOf<const T> dy{d_context + first * out_width, work.rows(), size(out_width), size(out_width)};
  const RowsOf<const T> context_rows{context + first * out_width, dy.count, dy.width, dy.stride};
  const RowsOf<T> q = at.queries(at.q, work.rows(), view.width), dq = at.queries(at.dq, work.rows(), view.width);
  view.tiles.prepare_queries(view.call.sizes, work.query_rows(), q);
  clear(dq);
  const bool q_finite = all_finite(RowsOf<const T>(q)), dy_finite = all_finite(dy);
  // s and the gradient of p, of the rows from `row` on; `copy` is the latter again, for the centres. `kept`: what
  // dropout keeps.
  const auto score = [&](const Place& part, std::int64_t t, Cover cover, std::int64_t row, RowsOf<T> s, RowsOf<T> dp,
                         RowsOf<T> copy, std::uint8_t* kept) {
    work.score(part, t, cover, rows_from(q, row, s.count), s, at.ahead);
    if (!align.needs_scores() && view.gate == nullptr) return;  // nor gradients of weights
    const RowsOf<const T> given = rows_from(dy, row, s.count);
    if (pointer) {
      copy_rows(RowsOf<const T>{given.data + part.keys.begin, given.count, dp.width, given.stride}, dp);
    } else {
      const KeysOf<T> v = work.values_of(values, part, t);
      if constexpr (std::is_same_v<T, float>) {
        product_tile(given, v.packed, dp, at.ahead);
      } else {
        gemm(as_matrix(given), as_matrix(v.rows).transposed(), as_matrix(dp));
      }
      if (view.table != nullptr) stages.read->weight_gradient(part, given, view.table_of(part.head), dp);
    }
    work.drop(part, dp, kept);
    if (view.gate == nullptr) return;
    work.gate(part, dp);
    copy_rows(RowsOf<const T>(dp), copy);
  };
  // p as it was applied.
  const auto apply = [&](const Place& part, RowsOf<T> p, RowsOf<T> copy, const std::uint8_t* kept) {
    if (to.centres != nullptr) {
      view.gate->centre_gradient(part, RowsOf<const T>(p), RowsOf<const T>(copy),
                                 to.centres + view.row(part.item, part.head, part.queries.begin));
    }
    work.gate(part, p);
    kept == nullptr ? work.drop(part, p) : work.drop_again(part, p, kept);
  };
  const auto spread = [&](const Place& part, std::int64_t t, std::int64_t row, RowsOf<T> p, RowsOf<T> ds) {
    if (!pointer) {
      const RowsOf<const T> given = rows_from(dy, row, p.count);
      const std::int64_t value = view.value_list(part.item, part.head) * view.keys + part.keys.begin;
      selected_product(
          as_matrix(RowsOf<const T>(p)).transposed(), given, dy_finite,
          RowsOf<T>{to.dv + value * view.value_width, p.width, size(view.value_width), size(view.value_width)}, false,
          at.ahead);
      if (to.table != nullptr) {
        stages.read->table_gradient(part, RowsOf<const T>(p), given, to.table + part.head * view.call.table[1]);
      }
    }
    if (!align.needs_scores()) return;
    const std::int64_t key = view.key_list(part.item, part.head) * view.keys + part.keys.begin;
    view.tiles.backward(part, RowsOf<const T>(rows_from(q, row, p.count)), q_finite, work.keys_of(part, t),
                        view.theta_of(part.head), RowsOf<const T>(ds),
                        {rows_from(dq, row, p.count),
                         {to.dk + key * view.key_width, p.width, size(view.key_width), size(view.key_width)},
                         to.theta == nullptr ? nullptr : to.theta + part.head * view.call.theta[1]});
    if (to.bias == nullptr) return;
    for (std::size_t i = 0; i < ds.count; ++i) {
      T* const bias = to.bias + work.bias_at(part, i);
      const T* const more = ds.row(i);
      const auto add = [&](T& sum, T x) { sum = (sum + x) + T(0); };  // see plain_zeros
      if (view.bias_steps[3] == 1) {
        for (std::size_t j = 0; j < ds.width; ++j) add(bias[j], more[j]);
      } else {
        for (std::size_t j = 0; j < ds.width; ++j)
          add(bias[static_cast<std::int64_t>(j) * view.bias_steps[3]], more[j]);
      }
    }
  };
  const T *peak = peaks + first, *tau = taus + first;
  if (pointer) {
    sum_products(dy, context_rows, {work.begin, work.visible.end}, at.factor);
  } else if (align.streams()) {
    dot_rows(dy, context_rows, at.factor);
  }
  if (!at.whole) {
    work.for_each_tile(false, [&](const Place& whole, std::int64_t tile_number, Cover whole_cover) {
      work.for_each_part(
          whole, tile_number, whole_cover, kBackPart, kBackTile, [&](const Place& part, std::int64_t t, Cover cover) {
            const std::int64_t first_row = part.queries.begin - work.place.queries.begin;
            const RowsOf<T> all_p{at.s, size(part.queries.count()), size(part.keys.count()), size(at.stride)};
            const RowsOf<T> all_ds{at.dp, all_p.count, all_p.width, all_p.stride};
            for (std::int64_t i = 0; i < part.queries.count(); i += kBackPart) {
              Place few = part;
              few.queries = {part.queries.begin + i, std::min(part.queries.begin + i + kBackPart, part.queries.end)};
              const std::size_t count = size(few.queries.count());
              const RowsOf<T> p = rows_from(all_p, i, count), ds = rows_from(all_ds, i, count);
              const RowsOf<T> copy{at.extra, count, p.width, p.stride};
              const std::int64_t row = first_row + i;
              std::uint8_t kept[kBackPart * kKeptBytes];
              score(few, t, cover, row, p, ds, copy, kept);
              align.pullback(p, peak + row, tau + row, at.factor + row, ds);
              apply(few, p, copy, kept);
            }
            spread(part, t, first_row, all_p, all_ds);
          });
    });
  } else {
    const auto part_of = [&](T* buffer, const Place& tile) { return work.part(buffer, at.stride, tile, true); };
    work.for_each_tile(true, [&](const Place& tile, std::int64_t t, Cover cover) {
      const RowsOf<T> s = part_of(at.s, tile), dp = part_of(at.dp, tile);
      if (cover != Cover::kNone) return score(tile, t, cover, 0, s, dp, part_of(at.extra, tile), nullptr);
      hide(s);
      clear(dp);
    });
    const RowsOf<T> whole{at.s, work.rows(), size(work.span()), size(at.stride)};
    const RowsOf<T> gradients{at.dp, whole.count, whole.width, whole.stride};
    if (view.choices != nullptr) {
      work.unchoose(whole, peak, tau, gradients);
    } else {
      align.pullback(whole, peak, tau, at.factor, gradients);
    }
    work.for_each_tile(false, [&](const Place& tile, std::int64_t t, Cover) {
      const RowsOf<T> p = part_of(at.s, tile);
      apply(tile, p, part_of(at.extra, tile), nullptr);
      spread(tile, t, 0, p, part_of(at.dp, tile));
    });
  }
  plain_zeros(dq);
  const std::int64_t query = view.query_row(work.place.item, work.place.head, work.place.queries.begin);
  const RowsOf<T> target{to.dq + query * view.width, work.rows(), size(view.width), size(view.width)};
  if (!to.add_dq) clear(target);
  view.tiles.finish_queries(view.call.sizes, work.query_rows(), RowsOf<const T>(dq), target);
}

// What a worker will probably turn to next: keys and values of a unit and the first head that looks at it, backward
// with all gradients. What is wanted first is added last.
template <class T>
void fetch_unit(const View<T>& view, std::int64_t number, const T* context, const T* dy, const Outlets<T>* to,
                Ahead& ahead) {
  const bool plain = view.v != nullptr && !view.shares_keys && !view.shares_queries;
  if (!plain || number >= view.batch * view.units()) return;
  const std::int64_t row = number * view.unit_heads() * view.queries;
  const std::int64_t key = number * view.unit_keys() * view.keys, value = number * view.unit_values() * view.keys;
  const auto add = [&](const T* of, std::int64_t first, std::int64_t count, std::int64_t width) {
    ahead.add(of + first * width, size(count * width) * sizeof(T) / sizeof(float));
  };
  if (to != nullptr) add(to->dq, row, view.queries, view.width);
  add(context, row, view.queries, view.value_width);
  if (to != nullptr) add(dy, row, view.queries, view.value_width);
  add(view.q, row, view.queries, view.width);
  add(view.v, value, view.keys, view.value_width);
  add(view.k, key, view.keys, view.key_width);
  if (to != nullptr) add(to->dv, value, view.keys, view.value_width);
  if (to != nullptr && !view.tiles.prepares_keys()) add(to->dk, key, view.keys, view.key_width);
}

// Heads are handled one after another by whoever prepares their keys, if there are enough of them; otherwise as many as
// there are threads are prepared at once and their blocks shared out. Either way only so many are held in panels.
template <class T>
void forward_all(const View<T>& view, const Plan& plan, Arena& arena, T* context, T* peaks, T* taus) {
  const std::int64_t units = view.units(), lists = view.batch * units, sharing = view.unit_heads();
  const ForwardRoom<T> room(view, plan, arena);
  const std::int64_t workers = room.workers, slots = room.slots;
  const PreparedKeys<T>& keys = room.keys;
  const Packed<T>& values = room.values;
  const auto prepare = [&](std::int64_t list, std::int64_t slot) {
    keys.prepare(view, plan, slot, list / units, list % units);
    prepare_values(view, plan, values, slot, list / units, list % units);
  };
  const auto run = [&](std::int64_t slot, const Plan::Block& block, std::int64_t head, int worker, Ahead* ahead) {
    Buffers<T> mine = room.buffers;
    mine.ahead = ahead;
    mine.use(room.memory + worker * mine.total);
    const bool pointer = view.stages.read->is_pointer();
    const auto forward = view.call.staged && !pointer ? staged_forward_block<T> : forward_block<T>;
    forward(BlockWork<T>(view, keys, slot, block, head), values, mine, context, peaks, taus);
    // A tile of weights 0 may be skipped or added: a −0 that faded away becomes 0 by adding 0. So it always does, here
    // and in the gradients.
    const std::int64_t width = pointer ? view.keys : view.value_width;
    plain_zeros(RowsOf<T>{context + view.row(block.item, head, block.queries.begin) * width,
                          size(block.queries.count()), size(width), size(width)});
  };
  if (lists >= 8 * workers) {
    parallel(size(lists), [&](std::size_t index, int worker) {
      const auto list = static_cast<std::int64_t>(index);
      const std::int64_t item = list / units, group = list % units;
      prepare(list, worker);
      Ahead ahead;
      fetch_unit<T>(view, list + workers, context, nullptr, nullptr, ahead);
      for (std::int64_t b = plan.first_block[item]; b < plan.first_block[item + 1]; ++b) {
        for (std::int64_t head = group * sharing; head < (group + 1) * sharing; ++head) {
          run(worker, plan.blocks[b], head, worker, &ahead);
        }
      }
    });
    return;
  }
  for (std::int64_t begin = 0; begin < lists; begin += slots) {
    const std::int64_t end = std::min(begin + slots, lists);
    parallel(size(end - begin), [&](std::size_t slot) {
      prepare(begin + static_cast<std::int64_t>(slot), static_cast<std::int64_t>(slot));
    });
    std::int64_t total = 0;
    for (std::int64_t list = begin; list < end; ++list) {
      const std::int64_t item = list / units;
      total += (plan.first_block[item + 1] - plan.first_block[item]) * sharing;
    }
    parallel(size(total), [&](std::size_t index, int worker) {
      auto rest = static_cast<std::int64_t>(index);
      for (std::int64_t list = begin; list < end; ++list) {
        const std::int64_t item = list / units, group = list % units;
        const std::int64_t count = (plan.first_block[item + 1] - plan.first_block[item]) * sharing;
        if (rest < count) {
          return run(list - begin, plan.blocks[plan.first_block[item] + rest / sharing],
                     group * sharing + rest % sharing, worker, nullptr);
        }
        rest -= count;
      }
    });
  }
}

// All queries of a unit, in order.
template <class T>
void backward_unit(const View<T>& view, const Plan& plan, const PreparedKeys<T>& keys, const Packed<T>& values,
                   Buffers<T> at, std::int64_t slot, std::int64_t item, std::int64_t unit, const T* context,
                   const T* dy, const T* peaks, const T* taus, const Outlets<T>& to) {
  // Heads that share values add to them block by block: who goes stage by stage does so, too.
  const bool streams = view.stages.align->streams() && !view.stages.read->is_pointer();
  const std::int64_t sharing = view.unit_heads(), step = streams ? kBackTile : kQueryTile;
  keys.prepare(view, plan, slot, item, unit);
  prepare_values(view, plan, values, slot, item, unit);
  for (std::int64_t s = plan.first_segment[item]; s < plan.first_segment[item + 1]; ++s) {
    const Segment& segment = plan.segments[s];
    for (std::int64_t i = segment.queries.begin; i < segment.queries.end; i += step) {
      const Plan::Block block{item, &segment, {i, std::min(i + step, segment.queries.end)}};
      for (std::int64_t head = unit * sharing; head < (unit + 1) * sharing; ++head) {
        backward_block(BlockWork<T>(view, keys, slot, block, head), values, at, context, dy, peaks, taus, to);
      }
    }
  }
}

}  // namespace

Attention attend_lowered(const Mechanism& mechanism, const Inputs& in, const Lowered& made, Var v,
                         const AttendOptions& options) {
  const FloatMode mode;
  const Stages& stages = mechanism.stages();
  Tape& tape = *in.tape;
  Arena& arena = tape.arena();
  const DType type = in.type;
  const auto value_of = [](Var x) { return x.defined() ? x.value() : Tensor(); };
  AttendCall call;
  call.mechanism = mechanism;
  call.sizes = in.sizes;
  call.batch = in.batch;
  call.queries = in.queries;
  call.keys = in.keys;
  call.q = made.q.value();
  call.k = made.k.value();
  call.theta = value_of(made.theta);
  call.table = value_of(made.table);
  call.centres = value_of(made.centres);
  call.bias = value_of(made.bias);
  const auto copy = [&](const Tensor& from) {
    const Tensor to = tape.make(from.shape(), from.dtype());
    to.copy_from(from);
    return to;
  };
  if (!options.lengths.empty()) {
    call.lengths = tape.make({in.batch}, DType::kI32);
    std::copy(options.lengths.begin(), options.lengths.end(), call.lengths.data<std::int32_t>());
  }
  if (options.documents.defined()) call.documents = copy(options.documents);
  if (options.mask.defined()) call.mask = copy(options.mask);
  if (options.edits != nullptr) edit_call(*options.edits, tape, type, call);
  call.draws = options.draws;
  call.entropy = options.entropy;
  make_state(call, type, tape);
  for (std::int64_t item = 0; item < in.batch; ++item) {
    const std::uint64_t id = options.ids.empty() ? static_cast<std::uint64_t>(item) : options.ids[size(item)];
    std::memcpy(call.ids.data<std::int32_t>() + 2 * item, &id, sizeof(id));
  }
  call.offset = in.offset;
  call.dropout = options.dropout;
  call.key = options.key;
  call.staged = options.staged;
  if (call.choices.defined()) std::fill_n(call.choices.data<std::int32_t>(), call.choices.size(), -1);
  if (call.advantage.defined()) std::memset(call.advantage.raw(), 0, call.advantage.bytes());
  const bool pointer = stages.read->is_pointer();
  const Tensor values = pointer ? Tensor() : v.value();
  const Tensor context = tape.make({in.batch, in.sizes.heads, in.queries, pointer ? in.keys : v[3]}, type);

  return by_type(type, [&]<class T>() -> Attention {
    const View<T> view(call, values);
    const Plan plan = make_plan(view, arena);
    if (call.documents.defined()) {  // positions of no document are in no block
      for (const Tensor& x : {context, call.peaks, call.taus}) std::memset(x.raw(), 0, x.bytes());
    }
    forward_all(view, plan, arena, context.data<T>(), call.peaks.data<T>(), call.taus.data<T>());

    const Var inputs[] = {made.q, made.k, pointer ? Var() : v, made.theta, made.table, made.centres, made.bias};
    const Var result = tape.record(Op::attend, context, inputs, [=, &tape](const Tensor& dy) {
      const View<T> again(call, values);
      const auto gradient_of = [&](Var x) {
        const Target to = tape.target(x);
        return to ? to : Target{tape.make(x.shape(), type), false};
      };
      const auto zeros = [&](const Shape& shape) {
        const Tensor x = tape.make(shape, type);
        std::memset(x.raw(), 0, x.bytes());
        return x;
      };
      const auto wanted = [&](Var x) {
        if (!x.defined() || !x.needs_gradient()) return Tensor();
        const Target to = gradient_of(x);
        if (!to.add) std::memset(to.gradient.raw(), 0, to.gradient.bytes());
        return to.gradient;
      };
      const auto data_of = [](const Tensor& x) { return x.defined() ? x.data<T>() : nullptr; };
      // What is not added to starts at 0: dk and dv when their turn comes, and dq with its rows, of which documents may
      // leave some out.
      Target dq = gradient_of(made.q), dk = gradient_of(made.k);
      const Target dv = pointer ? Target{} : gradient_of(v);
      // One variable may be several of them: then it is cleared now, and all are added.
      const auto shared = [](const Target& a, const Target& b) {
        return a.gradient.defined() && b.gradient.defined() && a.gradient.raw() == b.gradient.raw();
      };
      for (Target* each : {&dq, &dk}) {
        if (each->add || !(shared(*each, dv) || (each == &dq && shared(dq, dk)))) continue;
        std::memset(each->gradient.raw(), 0, each->gradient.bytes());
        each->add = true;
      }
      if (!dq.add && call.documents.defined()) std::memset(dq.gradient.raw(), 0, dq.gradient.bytes());
      if (again.batch == 0) {  // nobody's turn comes, but what all items share is there
        for (const Target& each : {dq, dk}) {
          if (!each.add) std::memset(each.gradient.raw(), 0, each.gradient.bytes());
        }
      }
      const Tensor d_bias = wanted(made.bias), d_centres = wanted(made.centres);
      const auto each_item = [&](Var x) { return x.defined() ? zeros(part_shape(call, x.value())) : Tensor(); };
      const Tensor d_theta = each_item(made.theta), d_table = each_item(made.table);
      const bool prepares = again.tiles.prepares_keys();
      const BackwardRoom<T> room(again, plan, d_bias.defined(), tape.arena());
      const std::int64_t key_numbers = room.key_numbers, value_numbers = room.value_numbers;
      parallel(size(room.pieces), [&](std::size_t piece, int worker) {
        const std::int64_t item_piece = static_cast<std::int64_t>(piece) / room.unit_pieces;
        const std::int64_t unit_piece = static_cast<std::int64_t>(piece) % room.unit_pieces;
        Buffers<T> mine = room.buffers;
        mine.use(room.memory + worker * mine.total);
        const Range items = room.all_items ? Range{0, again.batch} : Range{item_piece, item_piece + 1};
        const Range units = room.all_heads ? Range{0, again.units()} : Range{unit_piece, unit_piece + 1};
        for (std::int64_t unit = units.begin; unit < units.end; ++unit) {
          for (std::int64_t item = items.begin; item < items.end; ++item) {
            const std::int64_t key_at =
                ((again.shares_keys ? 0 : item) * again.units() + unit) * key_numbers;  // of the unit's numbers
            const std::int64_t value_at = (item * again.units() + unit) * value_numbers;
            const auto as_rows = [](T* from, std::int64_t numbers) {
              return RowsOf<T>{from, 1, size(numbers), size(numbers)};
            };
            const RowsOf<T> own_dk = as_rows(dk.gradient.data<T>() + key_at, key_numbers);
            const bool first = !again.shares_keys || item == items.begin;
            const bool last = !again.shares_keys || item + 1 == items.end;
            if (!dk.add && first) clear(own_dk);
            const RowsOf<T> own_dv = pointer ? RowsOf<T>{} : as_rows(dv.gradient.data<T>() + value_at, value_numbers);
            if (!pointer && !dv.add) clear(own_dv);
            // Gradients of prepared keys stand in the worker's own memory, where those of the unit would be.
            const RowsOf<T> own =
                as_rows(prepares ? room.d_prepared + worker * key_numbers : nullptr, prepares ? key_numbers : 0);
            if (prepares && first) clear(own);
            const auto of_item = [&](const Tensor& x) {
              return x.defined() ? x.data<T>() + item * again.heads * x[2] : nullptr;
            };
            const Outlets<T> to{dq.gradient.data<T>(),
                                prepares ? own.data - key_at : dk.gradient.data<T>(),
                                pointer ? nullptr : dv.gradient.data<T>(),
                                dq.add || (again.shares_queries && item > items.begin),
                                of_item(d_theta),
                                of_item(d_table),
                                data_of(d_bias),
                                data_of(d_centres)};
            Ahead ahead;
            fetch_unit<T>(again, item * again.units() + unit + room.slots, context.data<T>(), dy.data<T>(), &to, ahead);
            mine.ahead = &ahead;
            backward_unit(again, plan, room.keys, room.values, mine, worker, item, unit, context.data<T>(),
                          dy.data<T>(), call.peaks.data<T>(), call.taus.data<T>(), to);
            if (!pointer) plain_zeros(own_dv);
            if (!last) continue;  // others use these keys, too
            plain_zeros(prepares ? own : own_dk);
            if (!prepares) continue;
            const std::size_t count = size(again.unit_keys() * again.keys), width = size(again.key_width);
            again.tiles.finish_keys(call.sizes, RowsOf<const T>{again.k + key_at, count, width, width},
                                    RowsOf<const T>{own.data, count, width, width},
                                    RowsOf<T>{own_dk.data, count, width, width});
          }
        }
      });
      for (const auto& [parts, whole] : {std::pair(d_theta, made.theta), std::pair(d_table, made.table)}) {
        if (!whole.defined()) continue;
        plain_zeros(RowsOf<T>{parts.template data<T>(), 1, size(parts.size()), size(parts.size())});
        if (const Target to = tape.target(whole)) sum_to<T>(parts, to);
      }
    });
    const Var edited =
        options.edits == nullptr ? result : edit_context(*options.edits, call, result, pointer ? Var() : v, made.table);
    return {edited, AttendTrace(call)};
  });
}

EngineRoom engine_room(AttendCall call, const Tensor& values, bool bias_learns) {
  return by_type(call.q.dtype(), [&]<class T>() -> EngineRoom {
    CountedMemory forward, backward;
    make_state(call, call.q.dtype(), forward);
    const View<T> view(call, values);
    Arena arena;
    const Plan plan = make_plan(view, arena);
    const ForwardRoom<T> there(view, plan, forward);
    const BackwardRoom<T> back(view, plan, bias_learns, backward);
    for (const Tensor& x : {call.theta, call.table}) {
      if (x.defined()) backward.make(part_shape(call, x), call.q.dtype());
    }
    const auto bytes = [](std::int64_t count) { return size(count) * sizeof(T); };
    return {.forward = arena.used() + forward.used,
            .backward = backward.used,
            .whole_rows = there.buffers.whole,
            .row_bytes = bytes(there.buffers.score_size),
            .pieces = back.pieces,
            .unit_rows = view.queries * view.unit_heads()};
  });
}

Tensor AttendTrace::weights(const AskedWeights& asked) const {
  check(call_.mechanism.has_value(), "weights of a trace that holds nothing");
  check(asked.item >= 0 && asked.item < call_.batch, "weights: item ", asked.item, ", expected 0 to ", call_.batch - 1);
  check(asked.head >= 0 && asked.head < call_.sizes.heads, "weights: head ", asked.head, ", expected 0 to ",
        call_.sizes.heads - 1);
  const Range wanted = asked.queries.value_or(Range{0, call_.queries});
  check(wanted.begin >= 0 && wanted.begin <= wanted.end && wanted.end <= call_.queries, "weights: queries ",
        wanted.begin, " to ", wanted.end, ", expected within 0 to ", call_.queries);
  const FloatMode mode;
  const Tensor result = Tensor::zeros({wanted.count(), call_.keys}, call_.q.dtype());
  by_type(result.dtype(), [&]<class T>() {
    const View<T> view(call_, {});
    Arena arena;
    const Plan plan = make_plan(view, arena);
    const PreparedKeys<T> keys(view, plan, 1, false, arena);
    keys.prepare(view, plan, 0, asked.item, asked.head / std::max<std::int64_t>(1, view.unit_heads()));
    const Buffers<T> all_buffers(view, plan, false);
    T* const memory = allocate<T>(arena, threads() * all_buffers.total);
    const std::int64_t first_block = plan.first_block[asked.item];
    parallel(size(plan.first_block[asked.item + 1] - first_block), [&](std::size_t index, int worker) {
      Plan::Block block = plan.blocks[first_block + static_cast<std::int64_t>(index)];
      block.queries = {std::max(block.queries.begin, wanted.begin), std::min(block.queries.end, wanted.end)};
      if (block.queries.count() == 0) return;
      Buffers<T> buffers = all_buffers;
      buffers.use(memory + worker * buffers.total);
      const BlockWork<T> work(view, keys, 0, block, asked.head);
      const RowsOf<T> q = buffers.queries(buffers.q, work.rows(), view.width);
      view.tiles.prepare_queries(view.call.sizes, work.query_rows(), q);
      const std::int64_t first = view.row(asked.item, asked.head, block.queries.begin);
      work.for_each_tile(false, [&](const Place& whole, std::int64_t tile_number, Cover whole_cover) {
        work.for_each_part(
            whole, tile_number, whole_cover, kQueryPart, kMostQueries,
            [&](const Place& part, std::int64_t t, Cover cover) {
              const std::int64_t row = part.queries.begin - block.queries.begin;
              const RowsOf<T> s{buffers.s, size(part.queries.count()), size(part.keys.count()), size(buffers.stride)};
              work.score(part, t, cover, rows_from(q, row, s.count), s);
              view.stages.align->weigh(s, call_.peaks.template data<T>() + first + row,
                                       call_.taus.template data<T>() + first + row);
              if (view.choices != nullptr && !asked.expected) work.read_chosen(part, s);
              work.gate(part, s);
              if (asked.dropped) work.drop(part, s);
              for (std::size_t i = 0; i < s.count; ++i) {
                const std::int64_t to = part.queries.begin - wanted.begin + static_cast<std::int64_t>(i);
                std::copy_n(s.row(i), s.width, result.data<T>() + to * view.keys + part.keys.begin);
              }
            });
      });
    });
  });
  replace_weights(call_, asked.item, asked.head, wanted, result);
  return result;
}

AttendTrace AttendTrace::keep() const {
  AttendCall kept = call_;
  for (Tensor* x : {&kept.q, &kept.k, &kept.theta, &kept.table, &kept.centres, &kept.bias, &kept.lengths,
                    &kept.documents, &kept.mask, &kept.ids, &kept.peaks, &kept.taus, &kept.choices, &kept.advantage,
                    &kept.replaced, &kept.replaced_by}) {
    if (x->defined()) *x = x->clone();
  }
  return AttendTrace(std::move(kept));
}

}  // namespace regard
