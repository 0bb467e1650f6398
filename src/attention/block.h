// One block of queries, from its scores to what it reads and back. One tile's journey: score.forward -> bias -> scopes
// -> align -> dropout -> context += p·v, for all queries of a block where nothing is hidden; else a few at a time, and
// of the keys only what they see.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "attention/edits.h"
#include "attention/plan.h"
#include "kernels/dropout.h"

namespace regard::schedule {

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

template <class T>
void copy_rows(RowsOf<const T> from, RowsOf<T> to) {
  for (std::size_t i = 0; i < from.count; ++i) std::copy_n(from.row(i), from.width, to.row(i));
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

  // Of all its queries, for who counts.
  double seen_pairs() const {
    double pairs = 0;
    for (std::int64_t i = place.queries.begin; i < place.queries.end; ++i) {
      Place one = place;
      one.queries = {i, i + 1};
      pairs += static_cast<double>(seen_by(one).count());
    }
    return pairs;
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

  // `looked_at`: by somebody else than the align, which may not need them.
  void score(const Place& tile, std::int64_t t, Cover cover, RowsOf<const T> q, RowsOf<T> s, Ahead* ahead = nullptr,
             bool looked_at = false) const {
    if (view.held.knows_scores) {
      copy_rows(RowsOf<const T>(held_scores(tile)), s);
    } else if (looked_at || view.stages.align->needs_scores()) {
      KeysOf<T> k = keys_of(tile, t);
      k.ahead = ahead;
      view.tiles.forward(tile, q, k, view.theta_of(tile.head), s);
      if (view.held.scores != nullptr) copy_rows(RowsOf<const T>(s), held_scores(tile));
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

  // What a pass did not make because nobody may see it, the scopes hide again in the next.
  RowsOf<T> held_scores(const Place& tile) const {
    return {view.held.scores + view.row(tile.item, tile.head, tile.queries.begin) * view.keys + tile.keys.begin,
            size(tile.queries.count()), size(tile.keys.count()), size(view.keys)};
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
    if (drops_tiles() && view.held.knows_kept) return keep_tile(p, view.call.dropout, held_kept(tile));
    if (drops_tiles()) {
      return drop_tile(p, view.call.dropout, key, query, first, view.held.kept != nullptr ? held_kept(tile) : kept);
    }
    for (std::size_t i = 0; i < p.count; ++i) {
      dropout(p.row(i), p.row(i), p.width, view.call.dropout, key.at(query + i), first);
    }
  }
  void drop_again(const Place& tile, RowsOf<T> p, const std::uint8_t* kept) const {
    if (view.call.dropout == 0) return;
    if (!drops_tiles() || view.held.knows_kept) return drop(tile, p);
    keep_tile(p, view.call.dropout, kept);
  }
  std::uint8_t* held_kept(const Place& tile) const {
    const std::int64_t at = tile.keys.begin - segment.keys.begin, tiles = keys.packed.tiles;
    const std::int64_t list = tile.item * view.heads + tile.head;
    const std::int64_t row = (list * tiles + segment.tile + at / kKeyTile) * view.queries + tile.queries.begin;
    return view.held.kept + row * static_cast<std::int64_t>(kKeptBytes) + at % kKeyTile / 8;
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

template <class T>
RowsOf<T> rows_from(RowsOf<T> x, std::int64_t first, std::size_t count) {
  return {x.row(size(first)), count, x.width, x.stride};
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

// `weights`, if it is not null, gets the rows of weights [queries of the item, keys] of its head, zeros so far.
template <class T>
void forward_block(const BlockWork<T>& work, const Packed<T>& values, Buffers<T> at, T* context, T* peaks, T* taus,
                   T* weights = nullptr) {
  const View<T>& view = work.view;
  const Align& align = *view.stages.align;
  const std::int64_t first = view.row(work.place.item, work.place.head, work.place.queries.begin);
  const bool pointer = view.stages.read->is_pointer();
  const std::int64_t out_width = pointer ? view.keys : view.value_width;
  const RowsOf<T> out{context + first * out_width, work.rows(), size(out_width), size(out_width)};
  T *peak = peaks + first, *tau = taus + first;
  const RowsOf<T> q = at.queries(at.q, work.rows(), view.width);
  view.tiles.prepare_queries(view.call.sizes, work.query_rows(), q);
  const auto kept = [&](const Place& tile) {
    return RowsOf<T>{weights + tile.queries.begin * view.keys + tile.keys.begin, size(tile.queries.count()),
                     size(tile.keys.count()), size(view.keys)};
  };
  const auto read = [&](const Place& tile, std::int64_t t, RowsOf<T> p, RowsOf<T> to, bool fresh) {
    work.gate(tile, p);
    if (weights != nullptr && at.whole) copy_rows(RowsOf<const T>(p), kept(tile));
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
                           if (weights != nullptr) copy_rows(RowsOf<const T>(s), kept(part));  // the scores, for now
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
    if (weights == nullptr) return;
    work.for_each_tile(false, [&](const Place& whole, std::int64_t tile_number, Cover whole_cover) {
      work.for_each_part(whole, tile_number, whole_cover, kQueryPart, kMostQueries,
                         [&](const Place& part, std::int64_t, Cover) {
                           const std::int64_t row = part.queries.begin - work.place.queries.begin;
                           const RowsOf<T> to = kept(part), s{at.s, to.count, to.width, size(at.stride)};
                           copy_rows(RowsOf<const T>(to), s);
                           align.weigh(s, peak + row, tau + row);
                           work.gate(part, s);
                           copy_rows(RowsOf<const T>(s), to);
                         });
    });
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

}  // namespace regard::schedule
