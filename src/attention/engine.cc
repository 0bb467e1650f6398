// The schedules of attention: forward, backward and weights are three drivers over the same stages. Tiles have 60
// queries and 128 keys, counted from the first of their own sequence, so that what a row computes depends on nothing
// but its sequence. Only peak and τ of a row are kept; the other two passes make the scores again.
//
// One tile's journey: score.forward -> bias -> scopes -> align -> dropout -> context += p·v.
#include <algorithm>
#include <cstring>

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

using Cover = Scope::Cover;

std::size_t size(std::int64_t x) { return static_cast<std::size_t>(x); }

template <class T>
T* allocate(Arena& arena, std::int64_t count) {
  return static_cast<T*>(arena.allocate(size(count) * sizeof(T)));
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

  std::int64_t key_batch() const { return shares_keys ? 1 : batch; }
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
  // By where the query stands, so that one query at a time drops what the whole drops.
  RandomKey key_of(const Place& place, std::size_t i) const {
    std::uint64_t id;
    std::memcpy(&id, call.ids.data<std::int32_t>() + 2 * place.item, sizeof(id));
    return call.key.at(id)
        .at(static_cast<std::uint64_t>(place.head))
        .at(static_cast<std::uint64_t>(place.queries.begin + place.offset) + i);
  }

  const AttendCall& call;
  const Stages& stages;
  const PairTiles& tiles;
  std::int64_t batch, heads, key_groups, value_groups = 1, queries, keys, width, key_width, value_width = 0;
  bool shares_queries, shares_keys;  // all items have the same
  const T *q, *k, *v = nullptr, *theta = nullptr, *table = nullptr, *centres = nullptr, *bias = nullptr;
  const Scope* gate = nullptr;
  const std::int8_t* mask = nullptr;
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
  std::int64_t block_count = 0;
  std::int64_t panel_rows = 0, tiles = 0;  // of the item that has most
  std::int64_t longest = 0;                // keys of the longest sequence
};

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
      plan.block_count += (queries.count() + kQueryTile - 1) / kQueryTile;
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
  std::int64_t block = 0;
  for (std::int64_t item = 0; item < view.batch; ++item) {
    for (std::int64_t s = plan.first_segment[item]; s < plan.first_segment[item + 1]; ++s) {
      const Segment& segment = plan.segments[s];
      for (std::int64_t i = segment.queries.begin; i < segment.queries.end; i += kQueryTile) {
        plan.blocks[block++] = {item, &segment, {i, std::min(i + kQueryTile, segment.queries.end)}};
      }
    }
  }
  return plan;
}

// Rows of keys or values of all items and groups, ready for tiles: in panels of 16, and whether a tile is finite.
template <class T>
struct Packed {
  const T* rows = nullptr;  // as prepared; null: as they are
  float* panels = nullptr;
  bool* finite = nullptr;
  std::int64_t width = 0, panel_rows = 0, tiles = 0;

  Packed(const Plan& plan, std::int64_t lists, std::int64_t row_width, bool packs, Arena& arena)
      : Packed(plan.panel_rows, plan.tiles, lists, row_width, packs, arena) {}
  Packed(std::int64_t most_rows, std::int64_t most_tiles, std::int64_t lists, std::int64_t row_width, bool packs,
         Arena& arena)
      : width(row_width), panel_rows(most_rows), tiles(most_tiles) {
    if (packs && std::is_same_v<T, float>) panels = allocate<float>(arena, lists * panel_rows * width);
    finite = allocate<bool>(arena, lists * tiles);
  }
  void pack(const Segment& segment, std::int64_t list, RowsOf<const T> from) const {  // the rows of the segment
    if constexpr (std::is_same_v<T, float>) {
      if (panels != nullptr) {
        regard::pack(as_matrix(from).transposed(), panels + (list * panel_rows + segment.panels) * width);
      }
    }
    for (std::int64_t t = 0; t * kKeyTile < segment.keys.count(); ++t) {
      const std::int64_t begin = t * kKeyTile, end = std::min(begin + kKeyTile, segment.keys.count());
      finite[list * tiles + segment.tile + t] =
          all_finite({from.row(size(begin)), size(end - begin), from.width, from.stride});
    }
  }
  KeysOf<T> tile(const Segment& segment, std::int64_t list, std::int64_t t, RowsOf<const T> from) const {
    KeysOf<T> keys{from, {}, finite[list * tiles + segment.tile + t]};
    if (panels != nullptr) {
      keys.packed = {panels + (list * panel_rows + segment.panels + t * kKeyTile) * width, size(width), from.count};
    }
    return keys;
  }
};

// The keys as the score wants them. Those that all items share are one sequence, of which an item sees its part.
template <class T>
struct PreparedKeys {
  PreparedKeys(const View<T>& view, const Plan& plan, Arena& arena)
      : packed(view.shares_keys ? (view.keys + 15) / 16 * 16 : plan.panel_rows,
               view.shares_keys ? (view.keys + kKeyTile - 1) / kKeyTile : plan.tiles,
               view.key_batch() * view.key_groups, view.key_width, view.tiles.is_product(), arena) {
    if (view.tiles.prepares_keys()) {
      prepared = allocate<T>(arena, view.key_batch() * view.key_groups * view.keys * view.key_width);
    }
  }
  void prepare(const View<T>& view, const Plan& plan, std::int64_t list) const {
    const std::int64_t item = list / view.key_groups;
    const Segment whole{{0, view.queries}, {0, view.keys}, 0, 0};
    const Segment* begin = view.shares_keys ? &whole : plan.segments + plan.first_segment[item];
    const Segment* end = view.shares_keys ? &whole + 1 : plan.segments + plan.first_segment[item + 1];
    for (const Segment* segment = begin; segment != end; ++segment) {
      if (prepared != nullptr) {
        const RowsOf<const T> to = rows_of(view, list, segment->keys);
        view.tiles.prepare_keys(view.call.sizes, view.key_rows(list, segment->keys),
                                RowsOf<T>{const_cast<T*>(to.data), to.count, to.width, to.stride});
      }
      packed.pack(*segment, list, rows_of(view, list, segment->keys));
    }
  }
  RowsOf<const T> rows_of(const View<T>& view, std::int64_t list, Range range) const {
    RowsOf<const T> rows = view.key_rows(list, range);
    if (prepared != nullptr) rows.data = prepared + (rows.data - view.k);
    return rows;
  }
  KeysOf<T> tile(const View<T>& view, const Segment& segment, const Place& place, std::int64_t t) const {
    const std::int64_t list = view.key_list(place.item, place.head);
    return packed.tile(segment, list, t, rows_of(view, list, place.keys));
  }

  T* prepared = nullptr;
  Packed<T> packed;
};

template <class T>
void prepare_values(const View<T>& view, const Plan& plan, const Packed<T>& values, std::int64_t list) {
  const std::int64_t item = list / view.value_groups;
  for (std::int64_t s = plan.first_segment[item]; s < plan.first_segment[item + 1]; ++s) {
    const Segment& segment = plan.segments[s];
    values.pack(segment, list, view.value_rows(list, segment.keys));
  }
}

template <class T>
Cover mask_cover(const View<T>& view, const Place& place) {
  bool any = false, all = true;
  for (std::int64_t i = place.queries.begin; i < place.queries.end; ++i) {
    const std::int8_t* row =
        view.mask + place.item * view.mask_steps[0] + place.head * view.mask_steps[1] + i * view.mask_steps[2];
    for (std::int64_t j = place.keys.begin; j < place.keys.end; ++j) {
      const bool seen = row[j * view.mask_steps[3]] != 0;
      any |= seen;
      all &= seen;
    }
  }
  return !any ? Cover::kNone : all ? Cover::kAll : Cover::kSome;
}

template <class T>
void mask_select(const View<T>& view, const Place& place, RowsOf<T> s) {
  for (std::size_t i = 0; i < s.count; ++i) {
    const std::int8_t* row = view.mask + place.item * view.mask_steps[0] + place.head * view.mask_steps[1] +
                             (place.queries.begin + static_cast<std::int64_t>(i)) * view.mask_steps[2] +
                             place.keys.begin * view.mask_steps[3];
    for (std::size_t j = 0; j < s.width; ++j) {
      if (row[static_cast<std::int64_t>(j) * view.mask_steps[3]] == 0) s.row(i)[j] = kHidden<T>;
    }
  }
}

// A block of queries against the tiles of its keys.
template <class T>
struct BlockWork {
  BlockWork(const View<T>& v, const PreparedKeys<T>& k, const Plan::Block& block, std::int64_t head)
      : view(v), keys(k), segment(*block.segment) {
    place = {block.item,    head,         &v.call.sizes,
             block.queries, segment.keys, segment.keys,
             v.call.offset, nullptr,      std::is_same_v<T, double>};
    if (v.centres != nullptr) place.centres = v.centres + v.row(block.item, head, block.queries.begin);
    visible = segment.keys;
    for (const auto& scope : v.stages.scopes) {
      if (v.call.staged) break;
      const Range range = scope->visible(place);
      visible = {std::max(visible.begin, range.begin), std::min(visible.end, range.end)};
    }
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

  void score(const Place& tile, std::int64_t t, Cover cover, RowsOf<const T> q, RowsOf<T> s) const {
    view.tiles.forward(tile, q, keys.tile(view, segment, tile, t), view.theta_of(tile.head), s);
    if (view.bias != nullptr) {
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

  void drop(const Place& tile, RowsOf<T> p) const {
    if (view.call.dropout == 0) return;
    for (std::size_t i = 0; i < p.count; ++i) {
      dropout(p.row(i), p.row(i), p.width, view.call.dropout, view.key_of(tile, i),
              static_cast<std::uint64_t>(tile.keys.begin));
    }
  }

  void gate(const Place& tile, RowsOf<T> p) const {
    if (view.gate != nullptr) view.gate->gate(tile, p);
  }
  KeysOf<T> values_of(const Packed<T>& values, const Place& tile, std::int64_t t) const {
    const std::int64_t list = view.value_list(tile.item, tile.head);
    return values.tile(segment, list, t, view.value_rows(list, tile.keys));
  }

  // The tile's part of a buffer of whole rows, or all of a buffer for one tile.
  RowsOf<T> part(T* buffer, std::int64_t stride, const Place& tile, bool whole) const {
    return {buffer + (whole ? tile.keys.begin - begin : 0), rows(), size(tile.keys.count()), size(stride)};
  }

  const View<T>& view;
  const PreparedKeys<T>& keys;
  const Segment& segment;
  Place place;
  Range visible;
  std::int64_t first_tile, begin;

 private:
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

template <class T>
void hide(RowsOf<T> s) {
  for (std::size_t i = 0; i < s.count; ++i) std::fill_n(s.row(i), s.width, kHidden<T>);
}
template <class T>
void clear(RowsOf<T> x) {
  for (std::size_t i = 0; i < x.count; ++i) std::fill_n(x.row(i), x.width, T(0));
}

// Whether a block needs its rows whole: then all tiles of them are held at once.
template <class T>
bool needs_whole_rows(const View<T>& view) {
  return !view.stages.align->streams() || view.stages.read->is_pointer() || view.call.staged;
}

// The memory of a thread.
template <class T>
struct Buffers {
  Buffers(const View<T>& view, const Plan& plan)
      : stride(needs_whole_rows(view) ? std::max<std::int64_t>(1, (plan.longest + 15) / 16 * 16) : kKeyTile),
        query_size((kQueryTile * view.width + 15) / 16 * 16),
        extra_size(view.gate != nullptr || view.stages.read->is_pointer() ? kQueryTile * stride : 0),
        total(2 * query_size + 2 * kQueryTile * stride + extra_size + 64 * (stride / kKeyTile + 1)) {}
  void use(T* memory) {
    q = memory;
    dq = q + query_size;
    s = dq + query_size;
    dp = s + kQueryTile * stride;
    extra = dp + kQueryTile * stride;
    factor = extra + extra_size;
  }
  RowsOf<T> queries(T* at, std::size_t count, std::int64_t width) const {
    return {at, count, size(width), size(width)};
  }

  std::int64_t stride, query_size, extra_size, total;
  T *q = nullptr, *dq = nullptr, *s = nullptr, *dp = nullptr, *extra = nullptr, *factor = nullptr;
};

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
  clear(out);
  const auto read = [&](const Place& tile, std::int64_t t, RowsOf<T> p) {
    work.gate(tile, p);
    work.drop(tile, p);
    if (pointer) {
      return copy_rows(RowsOf<const T>(p), RowsOf<T>{out.data + tile.keys.begin, out.count, p.width, out.stride});
    }
    const KeysOf<T> v = work.values_of(values, tile, t);
    selected_product(as_matrix(RowsOf<const T>(p)), v.rows, v.finite, out);
    if (view.table != nullptr) view.stages.read->forward(tile, p, view.table_of(tile.head), out);
  };
  if (!needs_whole_rows(view)) {
    std::fill_n(peak, work.rows(), kHidden<T>);
    std::fill_n(tau, work.rows(), T(0));
    work.for_each_tile(false, [&](const Place& tile, std::int64_t t, Cover cover) {
      const RowsOf<T> s = work.part(at.s, at.stride, tile, false);
      work.score(tile, t, cover, q, s);
      align.absorb(s, peak, tau, at.factor);
      scale_rows(out, at.factor);
      read(tile, t, s);
    });
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
  work.for_each_tile(
      false, [&](const Place& tile, std::int64_t t, Cover) { read(tile, t, work.part(at.s, at.stride, tile, true)); });
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
  const auto factor_of = [&](std::int64_t t) { return at.factor + 64 * t; };
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
  const bool pointer = stages.read->is_pointer(), whole = needs_whole_rows(view);
  const std::int64_t out_width = pointer ? view.keys : view.value_width;
  const RowsOf<const T> dy{d_context + first * out_width, work.rows(), size(out_width), size(out_width)};
  const RowsOf<const T> context_rows{context + first * out_width, dy.count, dy.width, dy.stride};
  const RowsOf<T> q = at.queries(at.q, work.rows(), view.width), dq = at.queries(at.dq, work.rows(), view.width);
  view.tiles.prepare_queries(view.call.sizes, work.query_rows(), q);
  clear(dq);
  const bool q_finite = all_finite(RowsOf<const T>(q)), dy_finite = all_finite(dy);
  const auto score = [&](const Place& tile, std::int64_t t, Cover cover) {
    const RowsOf<T> s = work.part(at.s, at.stride, tile, whole), dp = work.part(at.dp, at.stride, tile, whole);
    if (cover == Cover::kNone) {
      hide(s);
      clear(dp);
      return;
    }
    work.score(tile, t, cover, q, s);
    if (pointer) {
      copy_rows(RowsOf<const T>{dy.data + tile.keys.begin, dy.count, dp.width, dy.stride}, dp);
    } else {
      const KeysOf<T> v = work.values_of(values, tile, t);
      if constexpr (std::is_same_v<T, float>) {
        gemm(as_matrix(dy), v.packed, as_matrix(dp));
      } else {
        gemm(as_matrix(dy), as_matrix(v.rows).transposed(), as_matrix(dp));
      }
      if (view.table != nullptr) stages.read->weight_gradient(tile, dy, view.table_of(tile.head), dp);
    }
    work.drop(tile, dp);
    if (view.gate == nullptr) return;
    work.gate(tile, dp);
    copy_rows(RowsOf<const T>(dp), work.part(at.extra, at.stride, tile, whole));
  };
  const auto spread = [&](const Place& tile, std::int64_t t) {
    const RowsOf<T> p = work.part(at.s, at.stride, tile, whole), ds = work.part(at.dp, at.stride, tile, whole);
    if (to.centres != nullptr) {
      view.gate->centre_gradient(tile, RowsOf<const T>(p), RowsOf<const T>(work.part(at.extra, at.stride, tile, whole)),
                                 to.centres + first);
    }
    work.gate(tile, p);
    work.drop(tile, p);
    const std::size_t count = size(tile.keys.count());
    if (!pointer) {
      const std::int64_t value = view.value_list(tile.item, tile.head) * view.keys + tile.keys.begin;
      selected_product(
          as_matrix(RowsOf<const T>(p)).transposed(), dy, dy_finite,
          RowsOf<T>{to.dv + value * view.value_width, count, size(view.value_width), size(view.value_width)});
      if (to.table != nullptr) {
        stages.read->table_gradient(tile, RowsOf<const T>(p), dy, to.table + tile.head * view.call.table[1]);
      }
    }
    const std::int64_t key = view.key_list(tile.item, tile.head) * view.keys + tile.keys.begin;
    view.tiles.backward(tile, q, q_finite, work.keys.tile(view, work.segment, tile, t), view.theta_of(tile.head),
                        RowsOf<const T>(ds),
                        {dq,
                         {to.dk + key * view.key_width, count, size(view.key_width), size(view.key_width)},
                         to.theta == nullptr ? nullptr : to.theta + tile.head * view.call.theta[1]});
    if (to.bias == nullptr) return;
    for (std::size_t i = 0; i < ds.count; ++i) {
      T* bias = to.bias + work.bias_at(tile, i);
      for (std::size_t j = 0; j < ds.width; ++j) {
        T& sum = bias[static_cast<std::int64_t>(j) * view.bias_steps[3]];
        sum = (sum + ds.row(i)[j]) + T(0);
      }
    }
  };
  const T *peak = peaks + first, *tau = taus + first;
  if (pointer) {
    sum_products(dy, context_rows, {work.begin, work.visible.end}, at.factor);
  } else if (align.streams()) {
    dot_rows(dy, context_rows, at.factor);
  }
  if (whole) {
    work.for_each_tile(true, score);
    const RowsOf<T> s{at.s, work.rows(), size(work.span()), size(at.stride)};
    const RowsOf<T> dp{at.dp, work.rows(), size(work.span()), size(at.stride)};
    align.pullback(s, peak, tau, at.factor, dp);
    work.for_each_tile(false, [&](const Place& tile, std::int64_t t, Cover) { spread(tile, t); });
  } else {
    work.for_each_tile(false, [&](const Place& tile, std::int64_t t, Cover cover) {
      score(tile, t, cover);
      align.pullback(work.part(at.s, at.stride, tile, false), peak, tau, at.factor,
                     work.part(at.dp, at.stride, tile, false));
      spread(tile, t);
    });
  }
  plain_zeros(dq);
  const std::int64_t query = view.query_row(work.place.item, work.place.head, work.place.queries.begin);
  view.tiles.finish_queries(view.call.sizes, work.query_rows(), RowsOf<const T>(dq),
                            RowsOf<T>{to.dq + query * view.width, work.rows(), size(view.width), size(view.width)});
}

// What forward has made and backward uses again.
template <class T>
struct Made {
  Plan plan;
  PreparedKeys<T> keys;
};

// What a call is about, from whatever was given.
Inputs inputs_of(const Mechanism& mechanism, Var q, Var k, Var v, const AttendOptions& options) {
  const Needs needs = mechanism.needs();
  const bool pointer = mechanism.stages().read->is_pointer();
  const std::string& line = mechanism.text();
  const auto rank = [](Var x, int wanted) { return !x.defined() || x.shape().rank() == wanted; };
  const auto shape = [](Var x) { return x.defined() ? to_text(x.shape()) : std::string("none"); };
  check(rank(q, 4) && rank(k, 4) && rank(v, 4), "attend: queries ", shape(q), ", keys ", shape(k), ", values ",
        shape(v), ": expected four dimensions each: [batch, heads, length, width]");
  check(rank(options.query_tokens, 3) && rank(options.key_tokens, 3), "attend: query tokens ",
        shape(options.query_tokens), ", key tokens ", shape(options.key_tokens),
        ": expected three dimensions each: [batch, length, width]");
  check(v.defined() || pointer, "attend: no values for \"", line, '"');
  check(q.defined() || options.query_tokens.defined(), "attend: neither queries nor their tokens for \"", line, '"');
  check(v.defined() || k.defined() || options.key_tokens.defined(), "attend: neither keys nor values for \"", line,
        '"');
  Inputs in;
  const Var some = q.defined() ? q : options.query_tokens;
  in.tape = &some.tape();
  in.type = some.dtype();
  in.batch = some[0];
  in.queries = q.defined() ? q[2] : options.query_tokens[1];
  in.keys = v.defined() ? v[2] : k.defined() ? k[2] : options.key_tokens[1];
  in.offset = options.first_query.value_or(0);
  in.sizes.heads = q.defined() ? q[1] : options.heads;
  in.sizes.groups = v.defined() ? v[1] : k.defined() ? k[1] : in.sizes.heads;
  in.sizes.values = v.defined() ? v[3] : 0;
  in.sizes.hidden = options.hidden;
  check((!k.defined() || k[0] == in.batch) && (!v.defined() || v[0] == in.batch) &&
            (!options.query_tokens.defined() || options.query_tokens[0] == in.batch) &&
            (!options.key_tokens.defined() || options.key_tokens[0] == in.batch),
        "attend: the batch sizes differ: queries ", shape(some), ", keys ", shape(k.defined() ? k : options.key_tokens),
        ", values ", shape(v));
  const auto fit = [&](Var x) {
    return !x.defined() || (x[1] == 0 ? in.sizes.heads == 0 : in.sizes.heads % x[1] == 0);
  };
  check(fit(k) && fit(v) && (!needs.rows || !k.defined() || !v.defined() || k[1] == v[1]),
        "attend: heads do not fit: queries ", shape(q), ", keys ", shape(k), ", values ", shape(v),
        ": expected a multiple of those of the keys, and as many of the values");
  check(!k.defined() || !v.defined() || k[2] == v[2], "attend: keys and values differ in length: keys ", shape(k),
        ", values ", shape(v), " (dimension 2: ", k.defined() ? k[2] : 0, " and ", v.defined() ? v[2] : 0, ")");
  check(!options.query_tokens.defined() || options.query_tokens[1] == in.queries, "attend: ", in.queries,
        " queries, query tokens ", shape(options.query_tokens));
  check(!options.key_tokens.defined() || options.key_tokens[1] == in.keys, "attend: ", in.keys, " keys, key tokens ",
        shape(options.key_tokens));
  in.q = q;
  in.k = k;
  in.query_tokens = options.query_tokens;
  in.key_tokens = options.key_tokens;
  const auto tokens = [&](Var rows) {
    return rows.defined() && rows[1] == 1 && in.sizes.heads == 1 ? reshape(rows, {rows[0], rows[2], rows[3]}) : Var();
  };
  if (needs.query_tokens && !in.query_tokens.defined()) in.query_tokens = tokens(q);
  if (needs.key_tokens && !in.key_tokens.defined()) in.key_tokens = tokens(k);
  check(!needs.rows || (q.defined() && k.defined()), "attend: \"", line, "\" compares queries with keys, got queries ",
        shape(q), " and keys ", shape(k));
  check(!needs.query_tokens || in.query_tokens.defined(), "attend: \"", line, "\" with ", in.sizes.heads,
        " heads needs query_tokens");
  check(!needs.key_tokens || in.key_tokens.defined(), "attend: \"", line, "\" with ", in.sizes.heads,
        " heads needs key_tokens");
  if (needs.rows) in.sizes.width = q[3];
  const auto token_width = [&](Var given, Var rows) {
    if (given.defined()) return given[2];
    return rows.defined() && in.sizes.heads == 1 ? rows[3] : 0;
  };
  in.sizes.query_token = token_width(in.query_tokens, q);
  in.sizes.key_token = token_width(in.key_tokens, k);
  in.sizes = completed(in.sizes);
  return in;
}

// Where each position stands in its own document; those of none at 0.
Tensor places_of(Tape& tape, const Tensor& documents) {
  const Tensor dense = documents.is_dense() ? documents : documents.clone();
  const Tensor places = tape.make({documents[0], 1, documents[1]}, DType::kI32);
  for (std::int64_t item = 0; item < documents[0]; ++item) {
    const std::int32_t* ids = dense.data<std::int32_t>() + item * documents[1];
    std::int32_t* to = places.data<std::int32_t>() + item * documents[1];
    for (std::int64_t i = 0; i < documents[1]; ++i) {
      to[i] = i > 0 && ids[i] >= 0 && ids[i] == ids[i - 1] ? to[i - 1] + 1 : 0;
    }
  }
  return places;
}

void check_call(const Mechanism& mechanism, const Inputs& in, const AttendOptions& options) {
  const Shape all = {in.batch, in.sizes.heads, in.queries, in.keys};
  if (!options.lengths.empty()) {
    check(static_cast<std::int64_t>(options.lengths.size()) == in.batch, "attend: ", options.lengths.size(),
          " lengths for a batch of ", in.batch);
  }
  for (std::size_t item = 0; item < options.lengths.size(); ++item) {
    check(options.lengths[item] >= 0 && options.lengths[item] <= in.keys, "attend: item ", item, " has length ",
          options.lengths[item], ", expected 0 to ", in.keys);
  }
  if (options.documents.defined()) {
    check(options.documents.dtype() == DType::kI32 && options.documents.shape() == Shape{in.batch, in.keys},
          "attend: documents are ", options.documents, ", expected i32 ", Shape{in.batch, in.keys});
    check(in.queries == in.keys, "attend: documents with ", in.queries, " queries and ", in.keys,
          " keys, expected as many");
    const Tensor dense = options.documents.is_dense() ? options.documents : options.documents.clone();
    for (std::int64_t item = 0; item < in.batch; ++item) {
      const std::int32_t* ids = dense.data<std::int32_t>() + item * in.keys;
      std::int32_t last = -1;
      for (std::int64_t i = 0; i < in.keys; ++i) {
        check(ids[i] < 0 || ids[i] >= last, "attend: item ", item, " has document ", ids[i], " behind ", last,
              ": expected numbers that go upwards");
        if (i > 0 && ids[i] >= 0 && ids[i] == last) {
          check(ids[i - 1] == last, "attend: item ", item, ": document ", last, " has a gap at position ", i - 1);
        }
        last = std::max(last, ids[i]);
      }
    }
  }
  if (options.mask.defined()) {
    check(options.mask.dtype() == DType::kI8 && options.mask.rank() == 4 &&
              broadcast(options.mask.shape(), all, "attend: mask") == all,
          "attend: the mask is ", options.mask, ", expected i8, spread to ", all);
  }
  if (options.bias.defined()) {
    check(options.bias.shape().rank() <= 4 && broadcast(options.bias.shape(), all, "attend: bias") == all,
          "attend: the bias is ", options.bias.shape(), ", expected to be spread to ", all);
  }
  const Stages& stages = mechanism.stages();
  const std::vector<Learned>& learned = stages.learned(in.sizes).all;
  check(options.learned.size() == learned.size(), "attend: ", options.learned.size(), " learned tensors for \"",
        mechanism.text(), "\", which learns ", learned.size());
  for (std::size_t i = 0; i < learned.size(); ++i) {
    check(options.learned[i].defined() && options.learned[i].shape() == learned[i].shape, "attend: learned[", i, "], '",
          learned[i].name, "', is ", options.learned[i].defined() ? to_text(options.learned[i].shape()) : "missing",
          ", expected ", learned[i].shape);
  }
  check(options.dropout >= 0 && options.dropout < 1, "attend: dropout ", options.dropout, ", expected 0 to below 1");
  check(options.ids.empty() || static_cast<std::int64_t>(options.ids.size()) == in.batch,
        "attend: ", options.ids.size(), " ids for a batch of ", in.batch);
  const Given given{.queries = in.queries,
                    .keys = in.keys,
                    .offset = options.first_query.has_value(),
                    .lengths = !options.lengths.empty() || in.batch == 0,
                    .documents = options.documents.defined(),
                    .mask = options.mask.defined(),
                    .bias = options.bias.defined()};
  for (const auto& scope : stages.scopes) scope->check_call(given);
}

// The call as the tiles see it.
struct Lowered {
  Var q, k, theta, table, centres, bias;
};

Lowered lower(const Stages& stages, const Inputs& in, const AttendOptions& options) {
  const Stages::AllLearned& learned = stages.learned(in.sizes);
  const auto part = [&](const Stages::Part& place) {
    return in.with(options.learned.subspan(place.begin, place.count));
  };
  const Inputs of_score = part(learned.score);
  Lowered made{.q = stages.score->lower_queries(of_score),
               .k = stages.score->lower_keys(of_score),
               .theta = stages.score->lower_theta(of_score),
               .table = stages.read->lower(part(learned.read)),
               .centres = {},
               .bias = stages.score->lower_bias(of_score)};
  for (std::size_t i = 0; i < stages.scopes.size(); ++i) {
    const Var centres = stages.scopes[i]->lower(part(learned.scopes[i]));
    if (centres.defined()) made.centres = centres;
  }
  if (options.bias.defined()) made.bias = made.bias.defined() ? made.bias + options.bias : options.bias;
  const Score::Widths widths = stages.score->widths(in.sizes);
  check(made.q[3] == widths.q && made.k[3] == widths.k, "attend: queries and keys differ in width: queries ",
        made.q.shape(), ", keys ", made.k.shape());
  return made;
}

}  // namespace

Attention attend(const Mechanism& mechanism, Var q, Var k, Var v, const AttendOptions& options) {
  const FloatMode mode;
  check_same_type(Op::attend, {q.defined() ? q : options.query_tokens, k, v, options.bias});
  Inputs in = inputs_of(mechanism, q, k, v, options);
  check_call(mechanism, in, options);
  if (options.documents.defined()) in.places = places_of(*in.tape, options.documents);
  const Stages& stages = mechanism.stages();
  stages.score->check_call(in);
  const Lowered made = lower(stages, in, options);
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
  call.ids = tape.make({in.batch, 2}, DType::kI32);
  for (std::int64_t item = 0; item < in.batch; ++item) {
    const std::uint64_t id = options.ids.empty() ? static_cast<std::uint64_t>(item) : options.ids[size(item)];
    std::memcpy(call.ids.data<std::int32_t>() + 2 * item, &id, sizeof(id));
  }
  call.peaks = tape.make({in.batch, in.sizes.heads, in.queries}, type);
  call.taus = tape.make({in.batch, in.sizes.heads, in.queries}, type);
  call.offset = in.offset;
  call.dropout = options.dropout;
  call.key = options.key;
  call.staged = options.staged;
  const bool pointer = stages.read->is_pointer();
  const Tensor values = pointer ? Tensor() : v.value();
  const Tensor context = tape.make({in.batch, in.sizes.heads, in.queries, pointer ? in.keys : v[3]}, type);

  return by_type(type, [&]<class T>() -> Attention {
    const View<T> view(call, values);
    const Made<T> ready = [&] {
      Plan plan = make_plan(view, arena);
      return Made<T>{plan, PreparedKeys<T>(view, plan, arena)};
    }();
    const Plan& plan = ready.plan;
    const std::int64_t key_lists = view.key_batch() * view.key_groups;
    const std::int64_t value_lists = pointer ? 0 : view.batch * view.value_groups;
    const Packed<T> packed_values(plan, value_lists, view.value_width, false, arena);
    parallel(size(key_lists),
             [&](std::size_t list) { ready.keys.prepare(view, plan, static_cast<std::int64_t>(list)); });
    parallel(size(value_lists),
             [&](std::size_t list) { prepare_values(view, plan, packed_values, static_cast<std::int64_t>(list)); });
    if (call.documents.defined()) {  // positions of no document are in no block
      for (const Tensor& x : {context, call.peaks, call.taus}) std::memset(x.raw(), 0, x.bytes());
    }
    const Buffers<T> buffers(view, plan);
    const Tensor memory = tape.make({threads(), buffers.total}, type);
    parallel(size(plan.block_count * view.heads), [&](std::size_t index, int worker) {
      const Plan::Block& block = plan.blocks[static_cast<std::int64_t>(index) / view.heads];
      const std::int64_t head = static_cast<std::int64_t>(index) % view.heads;
      Buffers<T> mine = buffers;
      mine.use(memory.data<T>() + worker * buffers.total);
      const auto forward = call.staged && !pointer ? staged_forward_block<T> : forward_block<T>;
      forward(BlockWork<T>(view, ready.keys, block, head), packed_values, mine, context.data<T>(), call.peaks.data<T>(),
              call.taus.data<T>());
      // A tile of weights 0 may be skipped or added: a −0 that faded away becomes 0 by adding 0. So it always does,
      // here and in the gradients.
      const std::int64_t first = view.row(block.item, head, block.queries.begin);
      plain_zeros(RowsOf<T>{context.data<T>() + first * context[3], size(block.queries.count()), size(context[3]),
                            size(context[3])});
    });

    const Var inputs[] = {made.q, made.k, pointer ? Var() : v, made.theta, made.table, made.centres, made.bias};
    const Var result = tape.record(Op::attend, context, inputs, [=, &tape](const Tensor& dy) {
      const View<T> again(call, values);
      Arena& room = tape.arena();
      const auto gradient_of = [&](Var x) -> Tensor {
        Target to = tape.target(x);
        if (!to) to = {tape.make(x.shape(), type), false};
        if (!to.add) std::memset(to.gradient.raw(), 0, to.gradient.bytes());
        return to.gradient;
      };
      const auto zeros = [&](const Shape& shape) {
        const Tensor x = tape.make(shape, type);
        std::memset(x.raw(), 0, x.bytes());
        return x;
      };
      const auto wanted = [&](Var x) { return x.defined() && x.needs_gradient() ? gradient_of(x) : Tensor(); };
      const auto data_of = [](const Tensor& x) { return x.defined() ? x.data<T>() : nullptr; };
      const Tensor dq = gradient_of(made.q), dk = gradient_of(made.k);
      const Tensor dv = pointer ? Tensor() : gradient_of(v);
      const Tensor d_bias = wanted(made.bias), d_centres = wanted(made.centres);
      const Tensor d_prepared = again.tiles.prepares_keys() ? zeros(made.k.shape()) : dk;
      // What is learned by all items: one each, added up in their order.
      const auto each_item = [&](Var x) { return x.defined() ? zeros({again.batch, again.heads, x[1]}) : Tensor(); };
      const Tensor d_theta = each_item(made.theta), d_table = each_item(made.table);
      // What shares a gradient is one piece of work, done in the order of items, heads and queries.
      const bool all_items =
          again.shares_keys || again.shares_queries || (d_bias.defined() && again.bias_steps[0] == 0);
      const bool all_heads = d_bias.defined() && again.bias_steps[1] == 0;
      const std::int64_t item_units = all_items ? 1 : again.batch;
      const std::int64_t head_units = all_heads ? 1
                                      : pointer ? again.key_groups
                                                : std::min(again.key_groups, again.value_groups);
      const std::int64_t sharing = head_units == 0 ? 0 : again.heads / head_units;  // heads of a unit
      const Packed<T> all_values(ready.plan, pointer ? 0 : again.batch * again.value_groups, again.value_width, true,
                                 room);
      const Buffers<T> spaces(again, ready.plan);
      const Tensor scratch = tape.make({threads(), spaces.total}, type);
      parallel(size(item_units * head_units), [&](std::size_t unit, int worker) {
        const std::int64_t item_unit = static_cast<std::int64_t>(unit) / head_units;
        const std::int64_t head_unit = static_cast<std::int64_t>(unit) % head_units;
        Buffers<T> mine = spaces;
        mine.use(scratch.data<T>() + worker * spaces.total);
        const Range items = all_items ? Range{0, again.batch} : Range{item_unit, item_unit + 1};
        const Range heads{head_unit * sharing, (head_unit + 1) * sharing};
        for (std::int64_t item = items.begin; item < items.end; ++item) {
          const auto of_item = [&](const Tensor& x) {
            return x.defined() ? x.data<T>() + item * again.heads * x[2] : nullptr;
          };
          const Outlets<T> to{dq.data<T>(),     d_prepared.data<T>(), data_of(dv),       of_item(d_theta),
                              of_item(d_table), data_of(d_bias),      data_of(d_centres)};
          if (!pointer && heads.count() > 0) {
            for (std::int64_t list = again.value_list(item, heads.begin); list <= again.value_list(item, heads.end - 1);
                 ++list) {
              prepare_values(again, ready.plan, all_values, list);
            }
          }
          for (std::int64_t b = 0; b < ready.plan.block_count; ++b) {
            const Plan::Block& block = ready.plan.blocks[b];
            if (block.item != item) continue;
            for (std::int64_t head = heads.begin; head < heads.end; ++head) {
              backward_block(BlockWork<T>(again, ready.keys, block, head), all_values, mine, context.data<T>(),
                             dy.data<T>(), call.peaks.data<T>(), call.taus.data<T>(), to);
            }
          }
          const auto lists_of = [](std::int64_t first, std::int64_t last, auto each) {
            for (std::int64_t list = first; list <= last; ++list) each(list);
          };
          if (heads.count() == 0) continue;
          if (!pointer) {
            lists_of(again.value_list(item, heads.begin), again.value_list(item, heads.end - 1),
                     [&](std::int64_t list) {
                       plain_zeros(RowsOf<T>{dv.data<T>() + list * again.keys * again.value_width, size(again.keys),
                                             size(again.value_width), size(again.value_width)});
                     });
          }
          if (again.shares_keys && item + 1 < items.end) continue;  // others use these keys, too
          lists_of(again.key_list(item, heads.begin), again.key_list(item, heads.end - 1), [&](std::int64_t list) {
            const RowsOf<const T> rows = again.key_rows(list, {0, again.keys});
            const std::int64_t at = rows.data - again.k;
            const RowsOf<T> d{d_prepared.data<T>() + at, rows.count, rows.width, rows.stride};
            plain_zeros(d);
            if (!again.tiles.prepares_keys()) return;
            again.tiles.finish_keys(call.sizes, rows, RowsOf<const T>(d),
                                    RowsOf<T>{dk.data<T>() + at, rows.count, rows.width, rows.stride});
          });
        }
      });
      for (const auto& [parts, whole] : {std::pair(d_theta, made.theta), std::pair(d_table, made.table)}) {
        if (!whole.defined()) continue;
        if (const Target to = tape.target(whole)) sum_to<T>(parts, to);
      }
    });
    return {result, AttendTrace(call)};
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
    const PreparedKeys<T> keys(view, plan, arena);
    keys.prepare(view, plan, view.key_list(asked.item, asked.head));
    Buffers<T> buffers(view, plan);
    buffers.use(allocate<T>(arena, buffers.total));
    for (std::int64_t b = 0; b < plan.block_count; ++b) {
      Plan::Block block = plan.blocks[b];
      block.queries = {std::max(block.queries.begin, wanted.begin), std::min(block.queries.end, wanted.end)};
      if (block.item != asked.item || block.queries.count() == 0) continue;
      const BlockWork<T> work(view, keys, block, asked.head);
      const RowsOf<T> q = buffers.queries(buffers.q, work.rows(), view.width);
      view.tiles.prepare_queries(view.call.sizes, work.query_rows(), q);
      const std::int64_t first = view.row(asked.item, asked.head, block.queries.begin);
      work.for_each_tile(false, [&](const Place& tile, std::int64_t t, Cover cover) {
        const RowsOf<T> s = work.part(buffers.s, buffers.stride, tile, false);
        work.score(tile, t, cover, q, s);
        view.stages.align->weigh(s, call_.peaks.template data<T>() + first, call_.taus.template data<T>() + first);
        work.gate(tile, s);
        if (asked.dropped) work.drop(tile, s);
        for (std::size_t i = 0; i < s.count; ++i) {
          const std::int64_t row = block.queries.begin - wanted.begin + static_cast<std::int64_t>(i);
          std::copy_n(s.row(i), s.width, result.data<T>() + row * view.keys + tile.keys.begin);
        }
      });
    }
  });
  return result;
}

AttendTrace AttendTrace::keep() const {
  AttendCall kept = call_;
  for (Tensor* x : {&kept.q, &kept.k, &kept.theta, &kept.table, &kept.centres, &kept.bias, &kept.lengths,
                    &kept.documents, &kept.mask, &kept.ids, &kept.peaks, &kept.taus}) {
    if (x->defined()) *x = x->clone();
  }
  return AttendTrace(std::move(kept));
}

}  // namespace regard
