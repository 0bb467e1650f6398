// Attention of a decoder to keys and values that stay: those of a source, the same at every step, and those of what is
// being written, to which every step adds some. They are put once where the products want them and never move; rows of
// one source share them, each by a list of the places ("slots") that its own past has.
//
//     KeptKeys kept(heads, width, value_width);
//     kept.put(slot, key, value);                              // rows [heads · width], heads side by side
//     attend_kept(mechanism, kept, queries, {.keys = 14}, context);
//
// What comes out are the bits of attend() over the same keys in the order of the list.
#pragma once

#include <cstdint>

#include "kernels/views.h"
#include "regard/attention/mechanism.h"
#include "regard/tensor/tensor.h"

namespace regard {

struct PackedMatrix;

// Whether attend_kept can stand for the mechanism: a product of the rows as they are, softmax and a sum, where the last
// query sees all keys before it.
bool can_keep(const Mechanism& mechanism);

class KeptKeys {
 public:
  KeptKeys(std::int64_t heads, std::int64_t width, std::int64_t value_width);

  // Any slot, used or new; room is made for it.
  void put(std::int64_t slot, const float* key, const float* value);

  std::int64_t heads() const { return heads_; }
  std::int64_t width() const { return width_; }
  std::int64_t value_width() const { return value_width_; }
  std::int64_t slots() const { return slots_; }  // as many as are used, all below this
  bool is_finite() const { return finite_; }     // no value is NaN or ∞
  // From slot `first` on, a multiple of 16; whole panels.
  PackedMatrix keys(std::int64_t head, std::int64_t first, std::int64_t count) const;
  Rows values(std::int64_t head, std::int64_t first, std::int64_t count) const;
  std::int64_t room() const { return room_; }  // slots from head to head

 private:
  void make_room(std::int64_t slots);

  std::int64_t heads_, width_, value_width_, slots_ = 0, room_ = 0;
  bool finite_ = true;
  Tensor keys_, values_;  // [heads, room/16, width, 16] and [heads, room, value_width]
};

// What weights are made of, in one piece of memory: peaks and τ of all rows, then scores, 16 columns at a time, so that
// they are copied from the cache as a whole. weigh_kept makes weights of those rows that somebody looks at.
struct KeptScores {
  float* data = nullptr;            // null: nobody will look
  std::int64_t rows = 0, keys = 0;  // head h of row r is row r·heads + h

  static std::int64_t wide(std::int64_t keys) { return (keys + 15) / 16 * 16; }
  static std::int64_t size(std::int64_t rows, std::int64_t keys) { return wide(2 * rows) + rows * wide(keys); }
  float* peaks() const { return data; }
  float* taus() const { return data + rows; }
  float* scores(std::int64_t row) const { return data + wide(2 * rows) + row * wide(keys); }
};

struct KeptLook {
  std::int64_t keys = 0;                // that every row sees
  const std::int32_t* slots = nullptr;  // [rows, keys]: where the keys of a row stand, in its order; null: 0, 1, 2, …
  KeptScores kept = {};                 // where scores go
};

// queries [rows, heads · width] and context [rows, heads · value_width], both dense.
void attend_kept(const Mechanism& mechanism, const KeptKeys& kept, Rows queries, const KeptLook& look, Tile context);

// Scores become weights; a peak and a τ a row.
void weigh_kept(const Mechanism& mechanism, Tile scores, const float* peaks, const float* taus);

// What all rows of a list read: out[r, h] = Σ_j weights[r·heads + h, j]·v_h[slots[r, j]] or, if it goes on, out +=
// that. One chain over j, as in a product; a weight of 0 takes nothing.
struct SlotSums {
  Rows weights;                         // [rows · heads, keys]
  const std::int32_t* slots = nullptr;  // of the keys of row 0
  std::size_t slot_stride = 0;          // from row to row
  const float* values = nullptr;        // slot s of head h: values + (h · head_stride + s) · width
  std::size_t heads = 0, head_stride = 0, width = 0;
  bool goes_on = false;
  float* out = nullptr;  // [rows, heads, width]
};
void sum_slots(const SlotSums& sums);

namespace reference {
void sum_slots(const SlotSums& sums);
}  // namespace reference

}  // namespace regard
