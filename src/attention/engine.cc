// The schedules of attention: forward, backward and weights are three drivers over the same stages. Tiles have 128
// keys, counted from the first of their own sequence, so that what a row computes depends on nothing but its sequence;
// a row knows nothing of the rows beside it, so their number is a matter of speed. Only peak and τ of a row are kept;
// the other two passes make the scores again.
//
// One tile's journey: score.forward -> bias -> scopes -> align -> dropout -> context += p·v, for all queries of a block
// where nothing is hidden; else a few at a time, and of the keys only what they see.
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

constexpr std::int64_t kQueryTile = 60;  // ten register blocks of a product: what a thread takes at a time
constexpr std::int64_t kKeyTile = 128;   // a tile of scores and the keys and values beside it stay in the second cache
constexpr std::int64_t kQueryPart = 12;  // queries that share a view when they do not see all of a tile
constexpr std::int64_t kMostQueries = kQueryTile + kQueryPart;  // the last rows of a sequence join the tile before
constexpr std::int64_t kBackTile = 120;  // queries of a backward tile: what is added to keys and values is read less
constexpr std::int64_t kBackPart = 24;   // as many are scored at once, and share a view when they do not see all

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
  RandomKey key_of(const Place& place) const {  // of the head; each query has one of its own behind it
    std::uint64_t id;
    std::memcpy(&id, call.ids.data<std::int32_t>() + 2 * place.item, sizeof(id));
    return call.key.at(id).at(static_cast<std::uint64_t>(place.head));
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

  Packed(const Plan& plan, std::int64_t slots, std::int64_t row_width, bool packs, bool checks, Arena& arena)
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

// The keys as the score wants them.
template <class T>
struct PreparedKeys {
  PreparedKeys(const View<T>& view, const Plan& plan, std::int64_t slots, bool backward, Arena& arena)
      : packed(plan, slots, view.width, view.stages.score->is_product(), backward, arena) {
    if (view.stages.score->prepares_keys()) prepared = allocate<T>(arena, slots * view.keys * view.width);
  }
  void prepare(const View<T>& view, const Plan& plan, std::int64_t slot, std::int64_t item, std::int64_t group) const {
    for (std::int64_t s = plan.first_segment[item]; s < plan.first_segment[item + 1]; ++s) {
      const Segment& segment = plan.segments[s];
      const RowsOf<const T> to = rows_of(view, slot, item, group, segment.keys);
      if (prepared != nullptr) {
        view.stages.score->prepare_keys(view.key_rows(item, group, segment.keys),
                                        RowsOf<T>{const_cast<T*>(to.data), to.count, to.width, to.stride});
      }
      packed.pack(segment, slot, to);
    }
  }
  RowsOf<const T> rows_of(const View<T>& view, std::int64_t slot, std::int64_t item, std::int64_t group,
                          Range range) const {
    RowsOf<const T> rows = view.key_rows(item, group, range);
    if (prepared != nullptr) rows.data = prepared + (slot * view.keys + range.begin) * view.width;
    return rows;
  }

  T* prepared = nullptr;
  Packed<T> packed;
};

template <class T>
void prepare_values(const View<T>& view, const Plan& plan, const Packed<T>& values, std::int64_t slot,
                    std::int64_t item, std::int64_t group) {
  for (std::int64_t s = plan.first_segment[item]; s < plan.first_segment[item + 1]; ++s) {
    const Segment& segment = plan.segments[s];
    values.pack(segment, slot, view.value_rows(item, group, segment.keys));
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
    place = {block.item, head, v.heads, block.queries, segment.keys, v.call.offset};
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
    const RowsOf<const T> from = keys.rows_of(view, slot, tile.item, view.group_of(tile.head), tile.keys);
    return keys.packed.tile(segment, slot, t, skipped_in(tile, t), from);
  }
  KeysOf<T> values_of(const Packed<T>& values, const Place& tile, std::int64_t t) const {
    const RowsOf<const T> from = view.value_rows(tile.item, view.group_of(tile.head), tile.keys);
    return values.tile(segment, slot, t, skipped_in(tile, t), from);
  }

  void score(const Place& tile, std::int64_t t, Cover cover, RowsOf<const T> q, RowsOf<T> s,
             Ahead* ahead = nullptr) const {
    if (view.stages.align->needs_scores()) {
      KeysOf<T> k = keys_of(tile, t);
      k.ahead = ahead;
      view.stages.score->forward(q, k, view.theta_of(tile.head), s);
    } else {
      clear(s);
    }
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

  // Dropout of a tile. Tells in `kept`, if that is not null, what stays, kKeptBytes a row.
  void drop(const Place& tile, RowsOf<T> p, std::uint8_t* kept = nullptr) const {
    if (view.call.dropout == 0) return;
    const RandomKey key = view.key_of(tile);
    const auto query = static_cast<std::uint64_t>(tile.queries.begin),
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
      const Range range = scope->visible(block);
      seen = {std::max(seen.begin, range.begin), std::min(seen.end, range.end)};
    }
    return seen;
  }
  Cover cover_of(const Place& tile) const {
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

// The memory of a thread. An align that streams wants the scores of a tile, the others whole rows.
template <class T>
struct Buffers {
  Buffers(const View<T>& view, const Plan& plan, bool backward)
      : streams(view.stages.align->streams()),
        backwards(backward),
        most(backward && streams ? kBackTile : kMostQueries),
        stride(streams ? kKeyTile : std::max<std::int64_t>(1, (plan.longest + 15) / 16 * 16)),
        query_size((most * view.width + 15) / 16 * 16),
        score_size(most * stride),
        total((backward ? 2 : 1) * (query_size + score_size) + (most + 15) / 16 * 16) {}
  void use(T* memory) {
    q = memory;
    s = q + query_size;
    factor = s + score_size;
    if (!backwards) return;
    dq = factor + (most + 15) / 16 * 16;
    dp = dq + query_size;
  }
  RowsOf<T> queries(T* at, std::size_t count, std::int64_t width) const {
    return {at, count, size(width), size(width)};
  }

  bool streams, backwards;
  std::int64_t most, stride, query_size, score_size, total;
  T *q = nullptr, *s = nullptr, *factor = nullptr, *dq = nullptr, *dp = nullptr;
  Ahead* ahead = nullptr;
};

template <class T>
RowsOf<T> rows_from(RowsOf<T> x, std::int64_t first, std::size_t count) {
  return {x.row(size(first)), count, x.width, x.stride};
}

template <class T>
void forward_block(const BlockWork<T>& work, const Packed<T>& values, Buffers<T> at, T* context, T* peaks, T* taus) {
  const View<T>& view = work.view;
  const Align& align = *view.stages.align;
  const std::int64_t first = view.row(work.place.item, work.place.head, work.place.queries.begin);
  const RowsOf<T> out{context + first * view.value_width, work.rows(), size(view.value_width), size(view.value_width)};
  T *peak = peaks + first, *tau = taus + first;
  const RowsOf<T> q = at.queries(at.q, work.rows(), view.width);
  view.stages.score->prepare_queries(work.query_rows(), q);
  const auto read = [&](const Place& tile, std::int64_t t, RowsOf<T> p, RowsOf<T> to, bool fresh) {
    work.drop(tile, p);
    const KeysOf<T> v = work.values_of(values, tile, t);
    selected_product(as_matrix(RowsOf<const T>(p)), v.rows, v.finite, to, fresh, at.ahead);
  };
  if (align.streams()) {
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
  align.solve(whole, peak, tau);
  align.weigh(whole, peak, tau);
  bool fresh = true;  // nothing is read yet
  work.for_each_tile(false, [&](const Place& tile, std::int64_t t, Cover) {
    read(tile, t, work.part(at.s, at.stride, tile, true), out, fresh);
    fresh = false;
  });
  if (fresh) clear(out);
}

// Where gradients go; all is added to.
template <class T>
struct Outlets {
  T *dq, *dk, *dv;  // as q, k and v; dk as the score prepared the keys
  bool add_dq;      // else dq holds nothing yet
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
  // s and the gradient of p, of the rows from `row` on.
  const auto score = [&](const Place& part, std::int64_t t, Cover cover, std::int64_t row, RowsOf<T> s, RowsOf<T> dp,
                         std::uint8_t* kept) {
    work.score(part, t, cover, rows_from(q, row, s.count), s, at.ahead);
    if (!align.needs_scores()) return;  // nor gradients of weights
    const KeysOf<T> v = work.values_of(values, part, t);
    const RowsOf<const T> given = rows_from(dy, row, s.count);
    if constexpr (std::is_same_v<T, float>) {
      product_tile(given, v.packed, dp, at.ahead);
    } else {
      gemm(as_matrix(given), as_matrix(v.rows).transposed(), as_matrix(dp));
    }
    work.drop(part, dp, kept);
  };
  const auto spread = [&](const Place& part, std::int64_t t, std::int64_t row, RowsOf<T> p, RowsOf<T> ds) {
    const std::int64_t key = (part.item * view.groups + group) * view.keys + part.keys.begin;
    selected_product(as_matrix(RowsOf<const T>(p)).transposed(), rows_from(dy, row, p.count), dy_finite,
                     RowsOf<T>{to.dv + key * view.value_width, p.width, size(view.value_width), size(view.value_width)},
                     false, at.ahead);
    if (!align.needs_scores()) return;
    stages.score->backward(RowsOf<const T>(rows_from(q, row, p.count)), q_finite, work.keys_of(part, t),
                           view.theta_of(part.head), RowsOf<const T>(ds),
                           {rows_from(dq, row, p.count),
                            {to.dk + key * view.width, p.width, size(view.width), size(view.width)},
                            to.theta == nullptr ? nullptr : to.theta + part.head * view.theta_step});
    if (to.bias == nullptr) return;
    for (std::size_t i = 0; i < ds.count; ++i) {
      T* bias = to.bias + work.bias_at(part, i);
      for (std::size_t j = 0; j < ds.width; ++j)
        bias[static_cast<std::int64_t>(j) * view.bias_steps[3]] += ds.row(i)[j];
    }
  };
  const T *peak = peaks + first, *tau = taus + first;
  if (align.streams()) {
    dot_rows(dy, RowsOf<const T>{context + first * view.value_width, dy.count, dy.width, dy.stride}, at.factor);
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
              const std::int64_t row = first_row + i;
              std::uint8_t kept[kBackPart * kKeptBytes];
              score(few, t, cover, row, p, ds, kept);
              align.pullback(p, peak + row, tau + row, at.factor + row, ds);
              work.drop_again(few, p, kept);
            }
            spread(part, t, first_row, all_p, all_ds);
          });
    });
  } else {
    work.for_each_tile(true, [&](const Place& tile, std::int64_t t, Cover cover) {
      const RowsOf<T> s = work.part(at.s, at.stride, tile, true), dp = work.part(at.dp, at.stride, tile, true);
      if (cover != Cover::kNone) return score(tile, t, cover, 0, s, dp, nullptr);
      hide(s);
      clear(dp);
    });
    align.pullback({at.s, work.rows(), size(work.span()), size(at.stride)}, peak, tau, nullptr,
                   {at.dp, work.rows(), size(work.span()), size(at.stride)});
    work.for_each_tile(false, [&](const Place& tile, std::int64_t t, Cover) {
      const RowsOf<T> p = work.part(at.s, at.stride, tile, true);
      work.drop(tile, p);
      spread(tile, t, 0, p, work.part(at.dp, at.stride, tile, true));
    });
  }
  const RowsOf<T> target{to.dq + first * view.width, work.rows(), size(view.width), size(view.width)};
  if (!to.add_dq) clear(target);
  stages.score->finish_queries(work.query_rows(), RowsOf<const T>(dq), target);
}

// What a worker will probably turn to next: a list of keys and the first head that looks at it, backward with all
// gradients. What is wanted first is added last.
template <class T>
void fetch_list(const View<T>& view, std::int64_t list, const T* context, const T* dy, const Outlets<T>* to,
                Ahead& ahead) {
  if (list >= view.batch * view.groups) return;
  const std::int64_t row = list * (view.heads / view.groups) * view.queries, key = list * view.keys;
  const auto add = [&](const T* of, std::int64_t first, std::int64_t count, std::int64_t width) {
    ahead.add(of + first * width, size(count * width) * sizeof(T) / sizeof(float));
  };
  if (to != nullptr) add(to->dq, row, view.queries, view.width);
  add(context, row, view.queries, view.value_width);
  if (to != nullptr) add(dy, row, view.queries, view.value_width);
  add(view.q, row, view.queries, view.width);
  add(view.v, key, view.keys, view.value_width);
  add(view.k, key, view.keys, view.width);
  if (to != nullptr) add(to->dv, key, view.keys, view.value_width);
  if (to != nullptr && !view.stages.score->prepares_keys()) add(to->dk, key, view.keys, view.width);
}

// Heads are handled one after another by whoever prepares their keys, if there are enough of them; otherwise as many as
// there are threads are prepared at once and their blocks shared out. Either way only so many are held in panels.
template <class T>
void forward_all(const View<T>& view, const Plan& plan, Arena& arena, T* context, T* peaks, T* taus) {
  const std::int64_t lists = view.batch * view.groups, sharing = view.groups == 0 ? 0 : view.heads / view.groups;
  const std::int64_t workers = threads();
  const std::int64_t slots = std::min(lists, workers);
  const PreparedKeys<T> keys(view, plan, slots, false, arena);
  const Packed<T> values(plan, slots, view.value_width, false, true, arena);
  const Buffers<T> buffers(view, plan, false);
  T* const memory = allocate<T>(arena, workers * buffers.total);
  const auto prepare = [&](std::int64_t list, std::int64_t slot) {
    keys.prepare(view, plan, slot, list / view.groups, list % view.groups);
    prepare_values(view, plan, values, slot, list / view.groups, list % view.groups);
  };
  const auto run = [&](std::int64_t slot, const Plan::Block& block, std::int64_t head, int worker, Ahead* ahead) {
    Buffers<T> mine = buffers;
    mine.ahead = ahead;
    mine.use(memory + worker * buffers.total);
    forward_block(BlockWork<T>(view, keys, slot, block, head), values, mine, context, peaks, taus);
  };
  if (lists >= 8 * workers) {
    parallel(size(lists), [&](std::size_t index, int worker) {
      const auto list = static_cast<std::int64_t>(index);
      const std::int64_t item = list / view.groups, group = list % view.groups;
      prepare(list, worker);
      Ahead ahead;
      fetch_list<T>(view, list + workers, context, nullptr, nullptr, ahead);
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
      const std::int64_t item = list / view.groups;
      total += (plan.first_block[item + 1] - plan.first_block[item]) * sharing;
    }
    parallel(size(total), [&](std::size_t index, int worker) {
      auto rest = static_cast<std::int64_t>(index);
      for (std::int64_t list = begin; list < end; ++list) {
        const std::int64_t item = list / view.groups, group = list % view.groups;
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

// All queries of the heads that share a list of keys, in order.
template <class T>
void backward_list(const View<T>& view, const Plan& plan, const PreparedKeys<T>& keys, const Packed<T>& values,
                   Buffers<T> at, std::int64_t slot, std::int64_t item, std::int64_t group, const T* context,
                   const T* dy, const T* peaks, const T* taus, const Outlets<T>& to) {
  const std::int64_t sharing = view.heads / view.groups;
  const std::int64_t step = at.streams ? kBackTile : kQueryTile;
  keys.prepare(view, plan, slot, item, group);
  prepare_values(view, plan, values, slot, item, group);
  for (std::int64_t s = plan.first_segment[item]; s < plan.first_segment[item + 1]; ++s) {
    const Segment& segment = plan.segments[s];
    for (std::int64_t i = segment.queries.begin; i < segment.queries.end; i += step) {
      const Plan::Block block{item, &segment, {i, std::min(i + step, segment.queries.end)}};
      for (std::int64_t head = group * sharing; head < (group + 1) * sharing; ++head) {
        backward_block(BlockWork<T>(view, keys, slot, block, head), values, at, context, dy, peaks, taus, to);
      }
    }
  }
}

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
  const Tensor context = tape.make({q[0], q[1], q[2], v[3]}, type);
  const Var theta = options.theta, bias = options.bias;

  return by_type(type, [&]<class T>() -> Attention {
    const View<T> view(call, v.value());
    const Plan plan = make_plan(view, arena);
    if (call.documents.defined()) {  // positions of no document are in no block
      for (const Tensor& x : {context, call.peaks, call.taus}) std::memset(x.raw(), 0, x.bytes());
    }
    forward_all(view, plan, arena, context.data<T>(), call.peaks.data<T>(), call.taus.data<T>());

    const Var inputs[] = {q, k, v, theta, bias};
    const Var result = tape.record(Op::attend, context, inputs, [=, &tape](const Tensor& dy) {
      const View<T> again(call, v.value());
      Arena& room = tape.arena();
      const auto gradient_of = [&](Var x) {
        const Target to = tape.target(x);
        return to ? to : Target{tape.make(x.shape(), type), false};
      };
      // What is not added to starts at 0: dk and dv when their turn comes, and dq with its rows, of which documents may
      // leave some out.
      const Target dq = gradient_of(q), dk = gradient_of(k), dv = gradient_of(v);
      if (!dq.add && call.documents.defined()) std::memset(dq.gradient.raw(), 0, dq.gradient.bytes());
      Tensor d_bias;
      if (bias.defined() && bias.needs_gradient()) {
        const Target to = gradient_of(bias);
        if (!to.add) std::memset(to.gradient.raw(), 0, to.gradient.bytes());
        d_bias = to.gradient;
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
      const std::int64_t slots = std::min<std::int64_t>(units, threads());
      const bool prepares = again.stages.score->prepares_keys();
      const PreparedKeys<T> keys(again, plan, slots, true, room);
      const Packed<T> values(plan, slots, again.value_width, true, false, room);
      const Buffers<T> buffers(again, plan, true);
      T* const memory = allocate<T>(room, slots * buffers.total);
      T* const d_prepared = prepares ? allocate<T>(room, slots * again.keys * again.width) : nullptr;
      parallel(size(units), [&](std::size_t unit, int worker) {
        const std::int64_t item_unit = static_cast<std::int64_t>(unit) / group_units;
        const std::int64_t group_unit = static_cast<std::int64_t>(unit) % group_units;
        Buffers<T> mine = buffers;
        mine.use(memory + worker * buffers.total);
        const Range items = all_items ? Range{0, again.batch} : Range{item_unit, item_unit + 1};
        const Range groups = all_heads ? Range{0, again.groups} : Range{group_unit, group_unit + 1};
        for (std::int64_t item = items.begin; item < items.end; ++item) {
          for (std::int64_t group = groups.begin; group < groups.end; ++group) {
            const std::int64_t list = item * again.groups + group;
            const RowsOf<const T> rows = again.key_rows(item, group, {0, again.keys});
            const RowsOf<T> own_dk{dk.gradient.data<T>() + (rows.data - again.k), rows.count, rows.width, rows.stride};
            const std::size_t value_width = size(again.value_width);
            if (!dk.add) clear(own_dk);
            if (!dv.add) {
              clear(RowsOf<T>{dv.gradient.data<T>() + list * again.keys * again.value_width, rows.count, value_width,
                              value_width});
            }
            // Gradients of prepared keys stand in the worker's own memory, where those of the list would be.
            const RowsOf<T> own{prepares ? d_prepared + worker * again.keys * again.width : nullptr, rows.count,
                                rows.width, rows.stride};
            if (prepares) clear(own);
            const Outlets<T> to{dq.gradient.data<T>(),
                                prepares ? own.data - list * again.keys * again.width : dk.gradient.data<T>(),
                                dv.gradient.data<T>(),
                                dq.add,
                                theta.defined() ? d_thetas.data<T>() + list * theta.value().size() : nullptr,
                                d_bias.defined() ? d_bias.data<T>() : nullptr};
            Ahead ahead;
            fetch_list<T>(again, list + slots, context.data<T>(), dy.data<T>(), &to, ahead);
            mine.ahead = &ahead;
            backward_list(again, plan, keys, values, mine, worker, item, group, context.data<T>(), dy.data<T>(),
                          call.peaks.data<T>(), call.taus.data<T>(), to);
            if (prepares) again.stages.score->finish_keys(rows, RowsOf<const T>(own), own_dk);
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
    const PreparedKeys<T> keys(view, plan, 1, false, arena);
    keys.prepare(view, plan, 0, asked.item, view.group_of(asked.head));
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
      view.stages.score->prepare_queries(work.query_rows(), q);
      const std::int64_t first = view.row(asked.item, asked.head, block.queries.begin);
      work.for_each_tile(false, [&](const Place& whole, std::int64_t tile_number, Cover whole_cover) {
        work.for_each_part(
            whole, tile_number, whole_cover, kQueryPart, kMostQueries,
            [&](const Place& part, std::int64_t t, Cover cover) {
              const std::int64_t row = part.queries.begin - block.queries.begin;
              const RowsOf<T> s{buffers.s, size(part.queries.count()), size(part.keys.count()), size(kKeyTile)};
              work.score(part, t, cover, rows_from(q, row, s.count), s);
              view.stages.align->weigh(s, call_.peaks.template data<T>() + first + row,
                                       call_.taus.template data<T>() + first + row);
              if (asked.dropped) work.drop(part, s);
              for (std::size_t i = 0; i < s.count; ++i) {
                const std::int64_t to = part.queries.begin - wanted.begin + static_cast<std::int64_t>(i);
                std::copy_n(s.row(i), s.width, result.data<T>() + to * view.keys + part.keys.begin);
              }
            });
      });
    });
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
