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

constexpr std::int64_t kQueryTile = 60;  // ten register blocks of a product
constexpr std::int64_t kKeyTile = 128;   // a tile of scores and the keys and values beside it stay in the second cache

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
        batch(c.q[0]),
        heads(c.q[1]),
        groups(c.k[1]),
        queries(c.q[2]),
        keys(c.k[2]),
        width(c.q[3]),
        q(c.q.data<T>()),
        k(c.k.data<T>()) {
    if (values.defined()) {
      v = values.data<T>();
      value_width = values[3];
    }
    const Shape all = {batch, heads, queries, keys};
    if (c.theta.defined()) theta = c.theta.data<T>();
    if (c.theta.defined() && c.theta.rank() == 2) theta_step = width;
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

  std::int64_t group_of(std::int64_t head) const { return head / (heads / groups); }
  // Row `first` and those behind it of one head.
  RowsOf<const T> query_rows(std::int64_t item, std::int64_t head, Range range) const {
    return {q + ((item * heads + head) * queries + range.begin) * width, size(range.count()), size(width), size(width)};
  }
  RowsOf<const T> key_rows(std::int64_t item, std::int64_t group, Range range) const {
    return {k + ((item * groups + group) * keys + range.begin) * width, size(range.count()), size(width), size(width)};
  }
  RowsOf<const T> value_rows(std::int64_t item, std::int64_t group, Range range) const {
    return {v + ((item * groups + group) * keys + range.begin) * value_width, size(range.count()), size(value_width),
            size(value_width)};
  }
  std::int64_t row(std::int64_t item, std::int64_t head, std::int64_t query) const {
    return (item * heads + head) * queries + query;
  }
  const T* theta_of(std::int64_t head) const { return theta == nullptr ? nullptr : theta + head * theta_step; }
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
  std::int64_t batch, heads, groups, queries, keys, width, value_width = 0;
  const T *q, *k, *v = nullptr, *theta = nullptr, *bias = nullptr;
  const std::int8_t* mask = nullptr;
  std::int64_t theta_step = 0, bias_steps[4] = {}, mask_steps[4] = {};
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
      : width(row_width), panel_rows(plan.panel_rows), tiles(plan.tiles) {
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

// The keys as the score wants them.
template <class T>
struct PreparedKeys {
  PreparedKeys(const View<T>& view, const Plan& plan, Arena& arena)
      : packed(plan, view.batch * view.groups, view.width, view.stages.score->is_product(), arena) {
    if (view.stages.score->prepares_keys()) {
      prepared = allocate<T>(arena, view.batch * view.groups * view.keys * view.width);
    }
  }
  void prepare(const View<T>& view, const Plan& plan, std::int64_t item, std::int64_t group) const {
    for (std::int64_t s = plan.first_segment[item]; s < plan.first_segment[item + 1]; ++s) {
      const Segment& segment = plan.segments[s];
      if (prepared != nullptr) {
        const RowsOf<const T> to = rows_of(view, item, group, segment.keys);
        view.stages.score->prepare_keys(view.key_rows(item, group, segment.keys),
                                        RowsOf<T>{const_cast<T*>(to.data), to.count, to.width, to.stride});
      }
      packed.pack(segment, item * view.groups + group, rows_of(view, item, group, segment.keys));
    }
  }
  RowsOf<const T> rows_of(const View<T>& view, std::int64_t item, std::int64_t group, Range range) const {
    RowsOf<const T> rows = view.key_rows(item, group, range);
    if (prepared != nullptr) rows.data = prepared + (rows.data - view.k);
    return rows;
  }
  KeysOf<T> tile(const View<T>& view, const Segment& segment, const Place& place, std::int64_t t) const {
    const std::int64_t group = view.group_of(place.head);
    return packed.tile(segment, place.item * view.groups + group, t, rows_of(view, place.item, group, place.keys));
  }

  T* prepared = nullptr;
  Packed<T> packed;
};

template <class T>
void prepare_values(const View<T>& view, const Plan& plan, const Packed<T>& values, std::int64_t item,
                    std::int64_t group) {
  for (std::int64_t s = plan.first_segment[item]; s < plan.first_segment[item + 1]; ++s) {
    const Segment& segment = plan.segments[s];
    values.pack(segment, item * view.groups + group, view.value_rows(item, group, segment.keys));
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
    place = {block.item, head, v.heads, block.queries, segment.keys, v.call.offset};
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
    view.stages.score->forward(q, keys.tile(view, segment, tile, t), view.theta_of(tile.head), s);
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

// The memory of a thread.
template <class T>
struct Buffers {
  Buffers(const View<T>& view, const Plan& plan)
      : stride(view.stages.align->streams() && !view.call.staged
                   ? kKeyTile
                   : std::max<std::int64_t>(1, (plan.longest + 15) / 16 * 16)),
        query_size((kQueryTile * view.width + 15) / 16 * 16),
        total(2 * query_size + 2 * kQueryTile * stride + 64 * (stride / kKeyTile + 1)) {}
  void use(T* memory) {
    q = memory;
    dq = q + query_size;
    s = dq + query_size;
    dp = s + kQueryTile * stride;
    factor = dp + kQueryTile * stride;
  }
  RowsOf<T> queries(T* at, std::size_t count, std::int64_t width) const {
    return {at, count, size(width), size(width)};
  }

  std::int64_t stride, query_size, total;
  T *q = nullptr, *dq = nullptr, *s = nullptr, *dp = nullptr, *factor = nullptr;
};

template <class T>
void forward_block(const BlockWork<T>& work, const Packed<T>& values, Buffers<T> at, T* context, T* peaks, T* taus) {
  const View<T>& view = work.view;
  const Align& align = *view.stages.align;
  const std::int64_t first = view.row(work.place.item, work.place.head, work.place.queries.begin);
  const RowsOf<T> out{context + first * view.value_width, work.rows(), size(view.value_width), size(view.value_width)};
  T *peak = peaks + first, *tau = taus + first;
  const RowsOf<T> q = at.queries(at.q, work.rows(), view.width);
  view.stages.score->prepare_queries(work.query_rows(), q);
  clear(out);
  const std::int64_t group = view.group_of(work.place.head);
  const auto read = [&](const Place& tile, std::int64_t t, RowsOf<T> p) {
    work.drop(tile, p);
    const KeysOf<T> v =
        values.tile(work.segment, tile.item * view.groups + group, t, view.value_rows(tile.item, group, tile.keys));
    selected_product(as_matrix(RowsOf<const T>(p)), v.rows, v.finite, out);
  };
  if (align.streams()) {
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
  align.solve(whole, peak, tau);
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
  view.stages.score->prepare_queries(work.query_rows(), q);
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
  work.for_each_tile(true, [&](const Place& tile, std::int64_t, Cover) { work.drop(tile, part(tile)); });

  clear(out);
  const std::int64_t group = view.group_of(work.place.head);
  work.for_each_tile(true, [&](const Place& tile, std::int64_t t, Cover) {
    if (align.streams()) scale_rows(out, factor_of(t));
    const KeysOf<T> v =
        values.tile(work.segment, tile.item * view.groups + group, t, view.value_rows(tile.item, group, tile.keys));
    selected_product(as_matrix(RowsOf<const T>(part(tile))), v.rows, v.finite, out);
  });
  if (!align.streams()) return;
  align.settle(work.rows(), peak, tau, at.factor);
  scale_rows(out, at.factor);
}

// Where gradients go; all is added to.
template <class T>
struct Outlets {
  T *dq, *dk, *dv;  // as q, k and v; dk as the score prepared the keys
  T* theta;         // of this unit, as theta; null: none
  T* bias;          // as bias; null: nobody wants it
};

template <class T>
void backward_block(const BlockWork<T>& work, const Packed<T>& values, Buffers<T> at, const T* context,
                    const T* d_context, const T* peaks, const T* taus, const Outlets<T>& to) {
  const View<T>& view = work.view;
  const Stages& stages = view.stages;
  const Align& align = *stages.align;
  const std::int64_t first = view.row(work.place.item, work.place.head, work.place.queries.begin);
  const std::int64_t group = view.group_of(work.place.head);
  const RowsOf<const T> dy{d_context + first * view.value_width, work.rows(), size(view.value_width),
                           size(view.value_width)};
  const RowsOf<T> q = at.queries(at.q, work.rows(), view.width), dq = at.queries(at.dq, work.rows(), view.width);
  stages.score->prepare_queries(work.query_rows(), q);
  clear(dq);
  const bool q_finite = all_finite(RowsOf<const T>(q)), dy_finite = all_finite(dy);
  const bool whole = !align.streams() || view.call.staged;
  const auto score = [&](const Place& tile, std::int64_t t, Cover cover) {
    const RowsOf<T> s = work.part(at.s, at.stride, tile, whole), dp = work.part(at.dp, at.stride, tile, whole);
    if (cover == Cover::kNone) {
      hide(s);
      clear(dp);
      return;
    }
    work.score(tile, t, cover, q, s);
    const KeysOf<T> v =
        values.tile(work.segment, tile.item * view.groups + group, t, view.value_rows(tile.item, group, tile.keys));
    if constexpr (std::is_same_v<T, float>) {
      gemm(as_matrix(dy), v.packed, as_matrix(dp));
    } else {
      gemm(as_matrix(dy), as_matrix(v.rows).transposed(), as_matrix(dp));
    }
    work.drop(tile, dp);
  };
  const auto spread = [&](const Place& tile, std::int64_t t) {
    const RowsOf<T> p = work.part(at.s, at.stride, tile, whole), ds = work.part(at.dp, at.stride, tile, whole);
    work.drop(tile, p);
    const std::int64_t key = (tile.item * view.groups + group) * view.keys + tile.keys.begin;
    const std::size_t count = size(tile.keys.count());
    selected_product(as_matrix(RowsOf<const T>(p)).transposed(), dy, dy_finite,
                     RowsOf<T>{to.dv + key * view.value_width, count, size(view.value_width), size(view.value_width)});
    stages.score->backward(q, q_finite, work.keys.tile(view, work.segment, tile, t), view.theta_of(tile.head),
                           RowsOf<const T>(ds),
                           {dq,
                            {to.dk + key * view.width, count, size(view.width), size(view.width)},
                            to.theta == nullptr ? nullptr : to.theta + tile.head * view.theta_step});
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
  if (align.streams()) {
    dot_rows(dy, RowsOf<const T>{context + first * view.value_width, dy.count, dy.width, dy.stride}, at.factor);
  }
  if (whole) {
    work.for_each_tile(true, score);
    align.pullback({at.s, work.rows(), size(work.span()), size(at.stride)}, peak, tau, at.factor,
                   {at.dp, work.rows(), size(work.span()), size(at.stride)});
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
  stages.score->finish_queries(work.query_rows(), RowsOf<const T>(dq),
                               RowsOf<T>{to.dq + first * view.width, work.rows(), size(view.width), size(view.width)});
}

// What forward has made and backward uses again.
template <class T>
struct Made {
  Plan plan;
  PreparedKeys<T> keys;
};

void check_call(const Mechanism& mechanism, Var q, Var k, Var v, const AttendOptions& options) {
  const auto four = [](Var x) { return x.shape().rank() == 4; };
  check(four(q) && four(k) && four(v), "attend: queries ", q.shape(), ", keys ", k.shape(), ", values ", v.shape(),
        ": expected four dimensions each: [batch, heads, length, width]");
  check(q[0] == k[0] && k[0] == v[0], "attend: the batch sizes differ: queries ", q.shape(), ", keys ", k.shape(),
        ", values ", v.shape());
  check(k[1] == v[1] && (k[1] == 0 ? q[1] == 0 : q[1] % k[1] == 0), "attend: heads do not fit: queries ", q.shape(),
        ", keys ", k.shape(), ", values ", v.shape(),
        ": expected a multiple of those of the keys, and as many of the values");
  check(q[3] == k[3], "attend: queries and keys differ in width: queries ", q.shape(), ", keys ", k.shape());
  check(k[2] == v[2], "attend: keys and values differ in length: keys ", k.shape(), ", values ", v.shape(),
        " (dimension 2: ", k[2], " and ", v[2], ")");
  const Shape all = {q[0], q[1], q[2], k[2]};
  if (!options.lengths.empty() || q[0] == 0) {
    check(static_cast<std::int64_t>(options.lengths.size()) == q[0], "attend: ", options.lengths.size(),
          " lengths for a batch of ", q[0]);
  }
  for (std::size_t item = 0; item < options.lengths.size(); ++item) {
    check(options.lengths[item] >= 0 && options.lengths[item] <= k[2], "attend: item ", item, " has length ",
          options.lengths[item], ", expected 0 to ", k[2]);
  }
  if (options.documents.defined()) {
    check(options.documents.dtype() == DType::kI32 && options.documents.shape() == Shape{q[0], k[2]},
          "attend: documents are ", options.documents, ", expected i32 ", Shape{q[0], k[2]});
    check(q[2] == k[2], "attend: documents with ", q[2], " queries and ", k[2], " keys, expected as many");
    const Tensor dense = options.documents.is_dense() ? options.documents : options.documents.clone();
    for (std::int64_t item = 0; item < q[0]; ++item) {
      const std::int32_t* ids = dense.data<std::int32_t>() + item * k[2];
      std::int32_t last = -1;
      for (std::int64_t i = 0; i < k[2]; ++i) {
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
  if (stages.score->takes_theta()) {
    check(
        options.theta.defined() && (options.theta.shape() == Shape{q[3]} || options.theta.shape() == Shape{q[1], q[3]}),
        "attend: theta is ", options.theta.defined() ? to_text(options.theta.shape()) : "missing", ", expected ",
        Shape{q[3]}, " or ", Shape{q[1], q[3]});
  } else {
    check(!options.theta.defined(), "attend: theta is given, but the score learns nothing");
  }
  check(options.dropout >= 0 && options.dropout < 1, "attend: dropout ", options.dropout, ", expected 0 to below 1");
  check(options.ids.empty() || static_cast<std::int64_t>(options.ids.size()) == q[0], "attend: ", options.ids.size(),
        " ids for a batch of ", q[0]);
  const Given given{.queries = q[2],
                    .keys = k[2],
                    .offset = options.first_query.has_value(),
                    .lengths = !options.lengths.empty() || q[0] == 0,
                    .documents = options.documents.defined(),
                    .mask = options.mask.defined()};
  for (const auto& scope : stages.scopes) scope->check_call(given);
}

}  // namespace

Attention attend(const Mechanism& mechanism, Var q, Var k, Var v, const AttendOptions& options) {
  const FloatMode mode;
  check_same_type(Op::attend, {q, k, v, options.theta, options.bias});
  check_call(mechanism, q, k, v, options);
  Tape& tape = q.tape();
  Arena& arena = tape.arena();
  const DType type = q.dtype();
  AttendCall call;
  call.mechanism = mechanism;
  call.q = q.value();
  call.k = k.value();
  if (options.theta.defined()) call.theta = options.theta.value();
  if (options.bias.defined()) call.bias = options.bias.value();
  const auto copy = [&](const Tensor& from) {
    const Tensor to = tape.make(from.shape(), from.dtype());
    to.copy_from(from);
    return to;
  };
  if (!options.lengths.empty()) {
    call.lengths = tape.make({q[0]}, DType::kI32);
    std::copy(options.lengths.begin(), options.lengths.end(), call.lengths.data<std::int32_t>());
  }
  if (options.documents.defined()) call.documents = copy(options.documents);
  if (options.mask.defined()) call.mask = copy(options.mask);
  call.ids = tape.make({q[0], 2}, DType::kI32);
  for (std::int64_t item = 0; item < q[0]; ++item) {
    const std::uint64_t id = options.ids.empty() ? static_cast<std::uint64_t>(item) : options.ids[size(item)];
    std::memcpy(call.ids.data<std::int32_t>() + 2 * item, &id, sizeof(id));
  }
  call.peaks = tape.make({q[0], q[1], q[2]}, type);
  call.taus = tape.make({q[0], q[1], q[2]}, type);
  call.offset = options.first_query.value_or(0);
  call.dropout = options.dropout;
  call.key = options.key;
  call.staged = options.staged;
  const Tensor context = tape.make({q[0], q[1], q[2], v[3]}, type);
  const Var theta = options.theta, bias = options.bias;

  return by_type(type, [&]<class T>() -> Attention {
    const View<T> view(call, v.value());
    const Made<T> made = [&] {
      Plan plan = make_plan(view, arena);
      return Made<T>{plan, PreparedKeys<T>(view, plan, arena)};
    }();
    const Plan& plan = made.plan;
    const std::int64_t lists = view.batch * view.groups;
    const Packed<T> values(plan, lists, view.value_width, false, arena);
    parallel(size(lists), [&](std::size_t list) {
      const std::int64_t item = static_cast<std::int64_t>(list) / view.groups;
      const std::int64_t group = static_cast<std::int64_t>(list) % view.groups;
      made.keys.prepare(view, plan, item, group);
      prepare_values(view, plan, values, item, group);
    });
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
      const auto forward = call.staged ? staged_forward_block<T> : forward_block<T>;
      forward(BlockWork<T>(view, made.keys, block, head), values, mine, context.data<T>(), call.peaks.data<T>(),
              call.taus.data<T>());
      // A tile of weights 0 may be skipped or added: a −0 that faded away becomes 0 by adding 0. So it always does,
      // here and in the gradients.
      const std::int64_t first = view.row(block.item, head, block.queries.begin);
      plain_zeros(RowsOf<T>{context.data<T>() + first * view.value_width, size(block.queries.count()),
                            size(view.value_width), size(view.value_width)});
    });

    const Var inputs[] = {q, k, v, theta, bias};
    const Var result = tape.record(Op::attend, context, inputs, [=, &tape](const Tensor& dy) {
      const View<T> again(call, v.value());
      Arena& room = tape.arena();
      const auto gradient_of = [&](Var x) -> Tensor {
        Target to = tape.target(x);
        if (!to) to = {tape.make(x.shape(), type), false};
        if (!to.add) std::memset(to.gradient.raw(), 0, to.gradient.bytes());
        return to.gradient;
      };
      const Tensor dq = gradient_of(q), dk = gradient_of(k), dv = gradient_of(v);
      Tensor d_bias, d_prepared = dk;
      if (bias.defined() && bias.needs_gradient()) d_bias = gradient_of(bias);
      if (again.stages.score->prepares_keys()) {
        d_prepared = tape.make(k.shape(), type);
        std::memset(d_prepared.raw(), 0, d_prepared.bytes());
      }
      // What shares a gradient is one piece of work, done in the order of items, heads and queries.
      const bool all_items = d_bias.defined() && again.bias_steps[0] == 0;
      const bool all_heads = d_bias.defined() && again.bias_steps[1] == 0;
      const std::int64_t item_units = all_items ? 1 : again.batch, group_units = all_heads ? 1 : again.groups;
      const std::int64_t units = item_units * group_units;
      Tensor d_thetas;
      if (theta.defined()) {
        Shape shape = {again.batch * again.groups};  // whoever computes them, in the order of items and heads
        for (int i = 0; i < theta.shape().rank(); ++i) shape = shape.plus(theta[i]);
        d_thetas = tape.make(shape, type);
        std::memset(d_thetas.raw(), 0, d_thetas.bytes());
      }
      const Packed<T> packed_values(made.plan, again.batch * again.groups, again.value_width, true, room);
      const Buffers<T> spaces(again, made.plan);
      const Tensor scratch = tape.make({threads(), spaces.total}, type);
      parallel(size(units), [&](std::size_t unit, int worker) {
        const std::int64_t item_unit = static_cast<std::int64_t>(unit) / group_units;
        const std::int64_t group_unit = static_cast<std::int64_t>(unit) % group_units;
        Buffers<T> mine = spaces;
        mine.use(scratch.data<T>() + worker * spaces.total);
        const Range items = all_items ? Range{0, again.batch} : Range{item_unit, item_unit + 1};
        const Range groups = all_heads ? Range{0, again.groups} : Range{group_unit, group_unit + 1};
        const std::int64_t sharing = again.groups == 0 ? 0 : again.heads / again.groups;  // heads of a group
        for (std::int64_t item = items.begin; item < items.end; ++item) {
          for (std::int64_t group = groups.begin; group < groups.end; ++group) {
            prepare_values(again, made.plan, packed_values, item, group);
            T* const d_theta =
                theta.defined() ? d_thetas.data<T>() + (item * again.groups + group) * theta.value().size() : nullptr;
            const Outlets<T> to{dq.data<T>(), d_prepared.data<T>(), dv.data<T>(), d_theta,
                                d_bias.defined() ? d_bias.data<T>() : nullptr};
            for (std::int64_t b = 0; b < made.plan.block_count; ++b) {
              const Plan::Block& block = made.plan.blocks[b];
              if (block.item != item) continue;
              for (std::int64_t head = group * sharing; head < (group + 1) * sharing; ++head) {
                backward_block(BlockWork<T>(again, made.keys, block, head), packed_values, mine, context.data<T>(),
                               dy.data<T>(), call.peaks.data<T>(), call.taus.data<T>(), to);
              }
            }
            const RowsOf<const T> rows = again.key_rows(item, group, {0, again.keys});
            const std::int64_t at = rows.data - again.k;
            plain_zeros(RowsOf<T>{d_prepared.data<T>() + at, rows.count, rows.width, rows.stride});
            const std::int64_t value_at = (item * again.groups + group) * again.keys * again.value_width;
            plain_zeros(
                RowsOf<T>{dv.data<T>() + value_at, rows.count, size(again.value_width), size(again.value_width)});
            if (again.stages.score->prepares_keys()) {
              again.stages.score->finish_keys(
                  rows, RowsOf<const T>{d_prepared.data<T>() + at, rows.count, rows.width, rows.stride},
                  RowsOf<T>{dk.data<T>() + at, rows.count, rows.width, rows.stride});
            }
          }
        }
      });
      if (theta.defined()) {
        if (const Target to = tape.target(theta)) sum_to<T>(d_thetas, to);
      }
    });
    return {result, AttendTrace(call)};
  });
}

Tensor AttendTrace::weights(const AskedWeights& asked) const {
  check(call_.mechanism.has_value(), "weights of a trace that holds nothing");
  check(asked.item >= 0 && asked.item < call_.q[0], "weights: item ", asked.item, ", expected 0 to ", call_.q[0] - 1);
  check(asked.head >= 0 && asked.head < call_.q[1], "weights: head ", asked.head, ", expected 0 to ", call_.q[1] - 1);
  const Range wanted = asked.queries.value_or(Range{0, call_.q[2]});
  check(wanted.begin >= 0 && wanted.begin <= wanted.end && wanted.end <= call_.q[2], "weights: queries ", wanted.begin,
        " to ", wanted.end, ", expected within 0 to ", call_.q[2]);
  const FloatMode mode;
  const Tensor result = Tensor::zeros({wanted.count(), call_.k[2]}, call_.q.dtype());
  by_type(result.dtype(), [&]<class T>() {
    const View<T> view(call_, {});
    Arena arena;
    const Plan plan = make_plan(view, arena);
    const PreparedKeys<T> keys(view, plan, arena);
    keys.prepare(view, plan, asked.item, view.group_of(asked.head));
    Buffers<T> buffers(view, plan);
    buffers.use(allocate<T>(arena, buffers.total));
    for (std::int64_t b = 0; b < plan.block_count; ++b) {
      Plan::Block block = plan.blocks[b];
      block.queries = {std::max(block.queries.begin, wanted.begin), std::min(block.queries.end, wanted.end)};
      if (block.item != asked.item || block.queries.count() == 0) continue;
      const BlockWork<T> work(view, keys, block, asked.head);
      const RowsOf<T> q = buffers.queries(buffers.q, work.rows(), view.width);
      view.stages.score->prepare_queries(work.query_rows(), q);
      const std::int64_t first = view.row(asked.item, asked.head, block.queries.begin);
      work.for_each_tile(false, [&](const Place& tile, std::int64_t t, Cover cover) {
        const RowsOf<T> s = work.part(buffers.s, buffers.stride, tile, false);
        work.score(tile, t, cover, q, s);
        view.stages.align->weigh(s, call_.peaks.template data<T>() + first, call_.taus.template data<T>() + first);
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
  for (Tensor* x : {&kept.q, &kept.k, &kept.theta, &kept.bias, &kept.lengths, &kept.documents, &kept.mask, &kept.ids,
                    &kept.peaks, &kept.taus}) {
    if (x->defined()) *x = x->clone();
  }
  return AttendTrace(std::move(kept));
}

}  // namespace regard
