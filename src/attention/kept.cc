#include "attention/kept.h"

#include "kernels/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/kept.cc"
#include <hwy/foreach_target.h>

#include "kernels/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace {

// So many vectors side by side, for all keys of a row.
template <std::size_t kVectors>
HWY_INLINE void SumStrip(const float* weights, const std::int32_t* slots, std::size_t count, const float* values,
                         std::size_t width, bool goes_on, float* out) {
  const Tag16 d;
  Vector16 all[kVectors];
#pragma GCC unroll 8
  for (std::size_t v = 0; v < kVectors; ++v) all[v] = goes_on ? hn::LoadU(d, out + v * kPartLanes) : hn::Zero(d);
  for (std::size_t j = 0; j < count; ++j) {
    if (weights[j] == 0.0f) continue;
    const Vector16 weight = hn::Set(d, weights[j]);
    const float* const row = values + static_cast<std::size_t>(slots[j]) * width;
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) all[v] = hn::MulAdd(weight, hn::LoadU(d, row + v * kPartLanes), all[v]);
  }
#pragma GCC unroll 8
  for (std::size_t v = 0; v < kVectors; ++v) hn::StoreU(all[v], d, out + v * kPartLanes);
}

void SumSlots(const SlotSums& sums) {
  const std::size_t rows = sums.weights.count, count = sums.weights.width, width = sums.width;
  for (std::size_t row = 0; row < rows; ++row) {
    const float* const weights = sums.weights.row(row);
    const std::int32_t* const slots = sums.slots + row / sums.heads * sums.slot_stride;
    const float* const values = sums.values + row % sums.heads * sums.head_stride * width;
    float* const out = sums.out + row * width;
    std::size_t c = 0;
    for (; c + 4 * kPartLanes <= width; c += 4 * kPartLanes) {
      SumStrip<4>(weights, slots, count, values + c, width, sums.goes_on, out + c);
    }
    for (; c + 2 * kPartLanes <= width; c += 2 * kPartLanes) {
      SumStrip<2>(weights, slots, count, values + c, width, sums.goes_on, out + c);
    }
    for (; c + kPartLanes <= width; c += kPartLanes) {
      SumStrip<1>(weights, slots, count, values + c, width, sums.goes_on, out + c);
    }
    if (c == width) continue;
    const std::size_t rest = width - c;
    Vector16 last = sums.goes_on ? LoadPart16(out + c, rest) : hn::Zero(Tag16());
    for (std::size_t j = 0; j < count; ++j) {
      if (weights[j] == 0.0f) continue;
      const float* const from = values + static_cast<std::size_t>(slots[j]) * width + c;
      last = hn::MulAdd(hn::Set(Tag16(), weights[j]), LoadPart16(from, rest), last);
    }
    StorePart16(last, out + c, rest);
  }
}

}  // namespace
}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <algorithm>
#include <cassert>
#include <cstring>
#include <typeinfo>

#include "attention/mechanism.h"
#include "attention/scores/product.h"
#include "base/float_mode.h"
#include "kernels/scratch.h"

namespace regard {
namespace {

HWY_EXPORT(SumSlots);

constexpr std::int64_t kPanel = static_cast<std::int64_t>(kPanelWidth);

std::int64_t whole_panels(std::int64_t keys) { return KeptScores::wide(keys); }
static_assert(kPanel == 16);

std::size_t size(std::int64_t x) { return static_cast<std::size_t>(x); }

}  // namespace

void sum_slots(const SlotSums& sums) { HWY_DYNAMIC_DISPATCH(SumSlots)(sums); }

void reference::sum_slots(const SlotSums& sums) {
  for (std::size_t row = 0; row < sums.weights.count; ++row) {
    for (std::size_t c = 0; c < sums.width; ++c) {
      float& out = sums.out[row * sums.width + c];
      double sum = sums.goes_on ? static_cast<double>(out) : 0;
      for (std::size_t j = 0; j < sums.weights.width; ++j) {
        const auto slot = static_cast<std::size_t>(sums.slots[row / sums.heads * sums.slot_stride + j]);
        const double weight = static_cast<double>(sums.weights.row(row)[j]);
        const float* const values = sums.values + (row % sums.heads * sums.head_stride + slot) * sums.width;
        if (weight != 0) sum += weight * static_cast<double>(values[c]);
      }
      out = static_cast<float>(sum);
    }
  }
}

bool can_keep(const Mechanism& mechanism) {
  const Stages& stages = mechanism.stages();
  const Score& score = *stages.score;
  const bool plain = typeid(score) == typeid(ProductScore) || typeid(score) == typeid(ScaledProductScore);
  const bool sees_all = std::all_of(stages.line.scopes.begin(), stages.line.scopes.end(), [](const Term& scope) {
    return scope.name == "global" || scope.name == "causal" || scope.name == "lengths";
  });
  return plain && sees_all && stages.line.align.name == "softmax" && stages.line.read.name == "sum";
}

KeptKeys::KeptKeys(std::int64_t heads, std::int64_t width, std::int64_t value_width)
    : heads_(heads), width_(width), value_width_(value_width) {}

void KeptKeys::make_room(std::int64_t slots) {
  const std::int64_t room = std::max(whole_panels(slots), 2 * room_);
  // Panels are multiplied as a whole: what is not used yet shall at least be numbers.
  const Tensor keys = Tensor::zeros({heads_, room * width_}), values = Tensor::empty({heads_, room * value_width_});
  const auto move = [&](const Tensor& from, const Tensor& to) {
    for (std::int64_t head = 0; head < heads_ && from.defined(); ++head) {
      std::copy_n(from.data<float>() + head * from[1], from[1], to.data<float>() + head * to[1]);
    }
  };
  move(keys_, keys);
  move(values_, values);
  keys_ = keys;
  values_ = values;
  room_ = room;
}

void KeptKeys::put(std::int64_t slot, const float* key, const float* value) {
  if (slot >= room_) make_room(slot + 1);
  slots_ = std::max(slots_, slot + 1);
  finite_ = finite_ && all_finite(Rows{value, 1, size(heads_ * value_width_), size(heads_ * value_width_)});
  for (std::int64_t head = 0; head < heads_; ++head, key += width_, value += value_width_) {
    float* const to = keys_.data<float>() + (head * room_ + slot / kPanel * kPanel) * width_ + slot % kPanel;
    for (std::int64_t c = 0; c < width_; ++c) to[c * kPanel] = key[c];
    std::copy_n(value, value_width_, values_.data<float>() + (head * room_ + slot) * value_width_);
  }
}

PackedMatrix KeptKeys::keys(std::int64_t head, std::int64_t first, std::int64_t count) const {
  return {keys_.data<float>() + (head * room_ + first) * width_, size(width_), size(whole_panels(count))};
}

Rows KeptKeys::values(std::int64_t head, std::int64_t first, std::int64_t count) const {
  return {values_.data<float>() + (head * room_ + first) * value_width_, size(count), size(value_width_),
          size(value_width_)};
}

// Tile after tile of 128 keys, counted from the first, as attend() goes; all heads of all rows together where a step
// knows nothing of keys.
void attend_kept(const Mechanism& mechanism, const KeptKeys& kept, Rows queries, const KeptLook& look, Tile context) {
  const FloatMode mode;
  const Stages& stages = mechanism.stages();
  const Align& align = *stages.align;
  const std::int64_t heads = kept.heads(), width = kept.width(), value_width = kept.value_width();
  const auto count = static_cast<std::int64_t>(queries.count), rows = count * heads;
  const AttendSizes sizes{.heads = heads, .groups = heads, .width = width, .key_width = width, .values = value_width};

  const bool keeps = look.kept.data != nullptr;
  assert(!keeps || (look.kept.rows == rows && look.kept.keys == look.keys));
  const std::int64_t wide = KeptScores::wide(look.keys);
  const std::int64_t columns = whole_panels(look.slots == nullptr ? std::min(look.keys, kKeyTile) : kept.slots());
  const std::int64_t aside = look.slots == nullptr ? 0 : rows * kKeyTile;  // scores in the order of a row's own keys
  static thread_local Scratch scratch;
  float* const q = scratch.reserve(size(rows * (width + columns + 3) + aside + 4 * kPanel));
  float* const products = q + whole_panels(rows * width);
  float* const ordered = products + whole_panels(rows * columns);
  float* const peak = ordered + aside;
  float *const mass = peak + rows, *const factor = mass + rows;

  const Tile prepared{q, size(rows), size(width), size(width)};  // row · heads + head
  stages.score->tiles().prepare_queries(sizes, Rows{queries.data, size(rows), size(width), size(width)}, prepared);
  const auto multiply = [&](std::int64_t first, std::int64_t keys) {
    for (std::int64_t head = 0; head < heads; ++head) {
      const PackedMatrix packed = kept.keys(head, first, keys);
      product_tile(Rows{q + head * width, size(count), size(width), size(heads * width)}, packed,
                   Tile{products + head * columns, size(count), packed.n, size(heads * columns)});
    }
  };
  if (look.slots != nullptr) multiply(0, kept.slots());
  std::fill_n(peak, rows, kHidden<float>);
  std::fill_n(mass, rows, 0.0f);
  const Tile out{context.data, size(rows), size(value_width), size(value_width)};
  for (std::int64_t first = 0; first < look.keys; first += kKeyTile) {
    const std::int64_t keys = std::min(kKeyTile, look.keys - first);
    Tile s{products, size(rows), size(keys), size(columns)};
    if (look.slots == nullptr) {
      multiply(first, keys);
    } else {
      s = {ordered, size(rows), size(keys), size(kKeyTile)};
      for (std::int64_t row = 0; row < rows; ++row) {
        const std::int32_t* const slots = look.slots + row / heads * look.keys + first;
        const float* const from = products + row * columns;
        float* const to = s.row(size(row));
        for (std::int64_t j = 0; j < keys; ++j) to[j] = from[slots[j]];
      }
    }
    if (keeps && size(wide) == s.stride) {
      std::copy_n(s.data, rows * wide, look.kept.scores(0));
    } else if (keeps) {  // whole panels of each row: what is behind its keys is not looked at
      for (std::int64_t row = 0; row < rows; ++row) {
        std::copy_n(s.row(size(row)), whole_panels(keys), look.kept.scores(row) + first);
      }
    }
    align.absorb(s, peak, mass, factor);
    if (first > 0) scale_rows(out, factor);
    if (look.slots != nullptr) {
      sum_slots({.weights = s,
                 .slots = look.slots + first,
                 .slot_stride = size(look.keys),
                 .values = kept.values(0, 0, kept.slots()).data,
                 .heads = size(heads),
                 .head_stride = size(kept.room()),
                 .width = size(value_width),
                 .goes_on = first > 0,
                 .out = out.data});
      continue;
    }
    for (std::int64_t head = 0; head < heads; ++head) {
      selected_product(Matrix{s.row(size(head)), size(count), size(keys), size(heads) * s.stride, 1},
                       kept.values(head, first, keys), kept.is_finite(),
                       Tile{out.row(size(head)), size(count), out.width, size(heads) * out.stride}, first == 0);
    }
  }
  if (look.keys == 0) std::fill_n(out.data, rows * value_width, 0.0f);
  align.settle(size(rows), peak, mass, factor);
  scale_rows(out, factor);
  plain_zeros(Tile{out.data, 1, size(rows * value_width), size(rows * value_width)});
  if (!keeps) return;
  std::copy_n(peak, rows, look.kept.peaks());
  std::copy_n(mass, rows, look.kept.taus());  // which it is now
}

void weigh_kept(const Mechanism& mechanism, Tile scores, const float* peaks, const float* taus) {
  const FloatMode mode;
  mechanism.stages().align->weigh(scores, peaks, taus);
}

}  // namespace regard
#endif
