// The stages of attention. Each works on one tile of scores while it is in the cache: a virtual call a tile is nothing
// beside the work in it, and families add up instead of multiplying. Stages are const and own no memory.
//
//     s = score(q, k)   ->   scopes select and add   ->   align makes weights   ->   out += p·v
//
// A new stage is one file that ends in `const Registry<Score>::Add add({…card…}, make);`. What is done once a row (maps
// that a score learns, a scope's guess where to look) is ordinary autograd code and "lowers" a call to tiles; what is
// done once a pair is tiles. f32 runs kernels, f64 plain references: every stage has both, so that gradients can be
// checked in double precision.
#pragma once

#include <cstdint>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "attention/cards.h"
#include "attention/choices.h"
#include "attention/line.h"
#include "attention/tiles.h"
#include "base/check.h"
#include "kernels/gemm.h"
#include "kernels/views.h"
#include "regard/attention/mechanism.h"

namespace regard {

template <class T>
inline constexpr T kHidden = -std::numeric_limits<T>::infinity();

inline constexpr std::int64_t kKeyTile = 128;      // a tile and the keys and values beside it stay in the second cache
inline constexpr std::int64_t kTallestTile = 120;  // queries of the tiles that stages are given, at most

// Which tile of which map. Query i stands at place i + offset among the keys; its sequence has the keys `sequence`.
struct Place {
  std::int64_t item = 0;
  std::int64_t head = 0;
  const AttendSizes* sizes = nullptr;
  Range queries, keys, sequence;
  std::int64_t offset = 0;
  const void* centres = nullptr;  // of all queries of the head, what Scope::lower gave; null: nothing
  bool wide = false;              // they are f64

  double centre(std::size_t i) const {  // of the i-th of the queries
    const std::int64_t at = queries.begin + static_cast<std::int64_t>(i);
    return wide ? static_cast<const double*>(centres)[at] : static_cast<double>(static_cast<const float*>(centres)[at]);
  }
};

// Keys of a tile: rows, and the same in panels for products (f32 only).
template <class T>
struct KeysOf {
  RowsOf<const T> rows;
  PackedMatrix packed;
  bool finite = true;      // no NaN or ∞ in the rows; known backward only
  Ahead* ahead = nullptr;  // for products: what to fetch meanwhile
};

// Gradients of one tile, added to what is there.
template <class T>
struct ScoreGradients {
  RowsOf<T> queries, keys;
  T* theta = nullptr;  // of this head
};

// What a call gives those who lower it.
struct Inputs {
  Tape* tape = nullptr;
  DType type = DType::kF32;
  Var q, k;                      // rows by head [batch, heads, length, width]; not defined: nobody needs them
  Var query_tokens, key_tokens;  // [batch, length, width], likewise
  std::span<const Var> learned;  // of this stage, as it lists them
  AttendSizes sizes;
  std::int64_t batch = 0, queries = 0, keys = 0, offset = 0;
  Tensor places;  // i32 [batch, 1, keys], of packed documents: where each position stands in its own; else not defined

  Inputs with(std::span<const Var> mine) const {
    Inputs made = *this;
    made.learned = mine;
    return made;
  }
};

// What a score does to tiles.
struct PairTiles {
  virtual ~PairTiles() = default;
  virtual bool is_product() const { return false; }  // keys are wanted in panels
  // Rows as the tiles want them (scaled, normalised), and back from the gradient of these to that of the rows.
  virtual bool prepares_keys() const { return false; }
  virtual void prepare_queries(const AttendSizes&, Rows q, Tile to) const { copy_rows(q, to); }
  virtual void prepare_queries(const AttendSizes&, RowsOf<const double> q, RowsOf<double> to) const {
    copy_rows(q, to);
  }
  virtual void prepare_keys(const AttendSizes&, Rows k, Tile to) const { copy_rows(k, to); }
  virtual void prepare_keys(const AttendSizes&, RowsOf<const double> k, RowsOf<double> to) const { copy_rows(k, to); }
  virtual void finish_queries(const AttendSizes&, Rows q, Rows d_prepared, Tile dq) const {
    add_rows(q, d_prepared, dq);
  }
  virtual void finish_queries(const AttendSizes&, RowsOf<const double> q, RowsOf<const double> d_prepared,
                              RowsOf<double> dq) const {
    add_rows(q, d_prepared, dq);
  }
  virtual void finish_keys(const AttendSizes&, Rows k, Rows d_prepared, Tile dk) const { add_rows(k, d_prepared, dk); }
  virtual void finish_keys(const AttendSizes&, RowsOf<const double> k, RowsOf<const double> d_prepared,
                           RowsOf<double> dk) const {
    add_rows(k, d_prepared, dk);
  }
  // s[i, j] = score(q_i, k_j); then ds[i, j] to gradients. What has ds = 0 adds nothing, whatever q and k hold.
  virtual void forward(const Place&, Rows q, const KeysOf<float>& k, const float* theta, Tile s) const = 0;
  virtual void forward(const Place&, RowsOf<const double> q, const KeysOf<double>& k, const double* theta,
                       RowsOf<double> s) const = 0;
  virtual void backward(const Place&, Rows q, bool q_finite, const KeysOf<float>& k, const float* theta, Rows ds,
                        const ScoreGradients<float>& to) const = 0;
  virtual void backward(const Place&, RowsOf<const double> q, bool q_finite, const KeysOf<double>& k,
                        const double* theta, RowsOf<const double> ds, const ScoreGradients<double>& to) const = 0;

 private:
  template <class T>
  static void copy_rows(RowsOf<const T> from, RowsOf<T> to) {
    for (std::size_t i = 0; i < from.count; ++i) std::copy_n(from.row(i), from.width, to.row(i));
  }
  template <class T>
  static void add_rows(RowsOf<const T>, RowsOf<const T> from, RowsOf<T> to) {
    for (std::size_t i = 0; i < from.count; ++i) {
      for (std::size_t c = 0; c < from.width; ++c) to.row(i)[c] += from.row(i)[c];
    }
  }
};

struct Score {
  virtual ~Score() = default;
  virtual const PairTiles& tiles() const = 0;
  virtual Needs needs() const { return {.rows = true}; }
  virtual std::vector<Learned> learned(const AttendSizes&) const { return {}; }
  virtual Longest longest() const { return {}; }
  virtual void check_call(const Inputs&) const {}
  // Once a call: queries [batch or 1, heads, queries, widths().q], keys [batch or 1, groups, keys, widths().k]; theta
  // [heads or 1, widths().theta], for every tile of a head; bias, spread to [batch, heads, queries, keys].
  struct Widths {
    std::int64_t q = 0, k = 0, theta = 0;
  };
  virtual Widths widths(const AttendSizes& sizes) const { return {sizes.width, sizes.width, 0}; }
  virtual Var lower_queries(const Inputs& in) const { return in.q; }
  virtual Var lower_keys(const Inputs& in) const { return in.k; }
  virtual Var lower_theta(const Inputs&) const { return {}; }
  virtual Var lower_bias(const Inputs&) const { return {}; }
};

// A score whose tiles are written once for both types: `Self` has
//   template <class T> void tile(const Place&, RowsOf<const T> q, const KeysOf<T>& k, const T* theta, RowsOf<T> s)
//   const template <class T> void spread(const Place&, RowsOf<const T> q, bool q_finite, const KeysOf<T>& k, const T*
//   theta,
//                                  RowsOf<const T> ds, const ScoreGradients<T>& to) const
template <class Self>
struct TileScore : Score, PairTiles {
  const PairTiles& tiles() const override { return *this; }
  void forward(const Place& place, Rows q, const KeysOf<float>& k, const float* theta, Tile s) const override {
    self().template tile<float>(place, q, k, theta, s);
  }
  void forward(const Place& place, RowsOf<const double> q, const KeysOf<double>& k, const double* theta,
               RowsOf<double> s) const override {
    self().template tile<double>(place, q, k, theta, s);
  }
  void backward(const Place& place, Rows q, bool q_finite, const KeysOf<float>& k, const float* theta, Rows ds,
                const ScoreGradients<float>& to) const override {
    self().template spread<float>(place, q, q_finite, k, theta, ds, to);
  }
  void backward(const Place& place, RowsOf<const double> q, bool q_finite, const KeysOf<double>& k, const double* theta,
                RowsOf<const double> ds, const ScoreGradients<double>& to) const override {
    self().template spread<double>(place, q, q_finite, k, theta, ds, to);
  }

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }
};

// What a call has beside queries, keys and values; null or not defined: nothing.
struct Given {
  std::int64_t queries = 0, keys = 0;
  bool offset = false, lengths = false, documents = false, mask = false, bias = false;
};

struct Scope {
  enum class Cover { kNone, kAll, kSome };  // nothing visible: the tile is skipped; nothing to add; neither
  virtual ~Scope() = default;
  virtual void check_call(const Given&) const {}
  // Of the keys [0, keys) those that any query of the block may see, or a few more.
  virtual Range visible(const Place& block) const { return block.keys; }
  virtual Cover cover(const Place&) const { return Cover::kAll; }
  // What a query sees follows from its place alone, and visible() of one query is exactly that.
  virtual bool sees_by_place() const { return true; }
  // Selects: what is hidden becomes −∞ whatever was there.
  virtual void add(const Place&, Tile) const {}
  virtual void add(const Place&, RowsOf<double>) const {}
  // A scope that looks where the query says: one number a query [batch, heads, queries], with gradient.
  virtual Needs needs() const { return {}; }
  virtual std::vector<Learned> learned(const AttendSizes&) const { return {}; }
  virtual Var lower(const Inputs&) const { return {}; }
  // After aligning: p becomes p·g. Back: `du` comes as the gradient of p·g times g, that is of p; the centres' is
  // added.
  virtual bool gates() const { return false; }
  virtual void gate(const Place&, Tile) const {}
  virtual void gate(const Place&, RowsOf<double>) const {}
  virtual void centre_gradient(const Place&, Rows, Rows, float*) const {}  // p before its gate, du
  virtual void centre_gradient(const Place&, RowsOf<const double>, RowsOf<const double>, double*) const {}
};

// A scope that sees an interval of keys for every query: `Self` has `Range seen(std::int64_t place) const`, whose ends
// do not go back as the place goes on.
template <class Self>
struct IntervalScope : Scope {
  Range visible(const Place& block) const override {
    if (block.queries.count() == 0) return {0, 0};
    const Range first = seen(block, block.queries.begin), last = seen(block, block.queries.end - 1);
    return {std::max(block.keys.begin, first.begin), std::min(block.keys.end, last.end)};
  }
  Cover cover(const Place& place) const override {
    const Range first = seen(place, place.queries.begin), last = seen(place, place.queries.end - 1);
    if (last.end <= place.keys.begin || first.begin >= place.keys.end) return Cover::kNone;
    return last.begin <= place.keys.begin && first.end >= place.keys.end ? Cover::kAll : Cover::kSome;
  }
  void add(const Place& place, Tile s) const override { select(place, s); }
  void add(const Place& place, RowsOf<double> s) const override { select(place, s); }

 private:
  Range seen(const Place& place, std::int64_t query) const {
    return static_cast<const Self&>(*this).seen(query + place.offset);
  }
  template <class T>
  void select(const Place& place, RowsOf<T> s) const {
    for (std::size_t i = 0; i < s.count; ++i) {
      const Range range = seen(place, place.queries.begin + static_cast<std::int64_t>(i));
      const std::int64_t width = place.keys.count();
      const std::int64_t begin = std::clamp<std::int64_t>(range.begin - place.keys.begin, 0, width);
      const std::int64_t end = std::clamp<std::int64_t>(range.end - place.keys.begin, begin, width);
      std::fill(s.row(i), s.row(i) + begin, kHidden<T>);
      std::fill(s.row(i) + end, s.row(i) + width, kHidden<T>);
    }
  }
};

// p = f((s − peak) − τ), two numbers a row. If p sums to one and g = f′, then ds = g·(dp − Σ g·dp/Σ g).
struct Align {
  virtual ~Align() = default;
  virtual bool needs_scores() const { return true; }  // else any will do: only what is hidden matters
  // Peak and τ of whole rows, the peak being any number near the scores that have weight. A row in which nothing is
  // visible: both 0.
  virtual void solve(Tile s, float* peak, float* tau) const = 0;
  virtual void solve(RowsOf<double> s, double* peak, double* tau) const = 0;
  virtual void weigh(Tile s, const float* peak, const float* tau) const = 0;  // s becomes p
  virtual void weigh(RowsOf<double> s, const double* peak, const double* tau) const = 0;
  // Of whole rows, or of any tile if the align streams; then delta = Σ p·dp is given. s becomes p, dp becomes ds.
  virtual void pullback(Tile s, const float* peak, const float* tau, const float* delta, Tile dp) const = 0;
  virtual void pullback(RowsOf<double> s, const double* peak, const double* tau, const double* delta,
                        RowsOf<double> dp) const = 0;
  // Softmax needs no whole rows. absorb: s becomes exp(s − peak) for the peak so far, mass their sum so far, factor
  // what all that was made before has to be multiplied with. At first peak is −∞ and mass 0. settle: mass becomes τ,
  // factor what the sum of the values has to be multiplied with.
  virtual bool streams() const { return false; }
  virtual void absorb(Tile, float*, float*, float*) const {}
  virtual void absorb(RowsOf<double>, double*, double*, double*) const {}
  virtual void settle(std::size_t, float*, float*, float*) const {}
  virtual void settle(std::size_t, double*, double*, double*) const {}
  // Of an align that reads some of the keys, chosen by p: how. Its pullback is that of reading them all with p.
  virtual const Choosing* choosing() const { return nullptr; }
  bool draws() const { return choosing() != nullptr; }
};

// Behind the weights: what is read beside Σ p·v, or instead.
struct Read {
  virtual ~Read() = default;
  virtual bool is_pointer() const { return false; }  // the weights themselves are the answer
  virtual std::vector<Learned> learned(const AttendSizes&) const { return {}; }
  virtual Var lower(const Inputs&) const { return {}; }  // a table [heads or 1, …]
  // out += what the table adds. Back: dp += dy's part of it; then, with the weights as they were applied, to the table.
  virtual void forward(const Place&, Rows, const float*, Tile) const {}
  virtual void forward(const Place&, RowsOf<const double>, const double*, RowsOf<double>) const {}
  virtual void weight_gradient(const Place&, Rows, const float*, Tile) const {}
  virtual void weight_gradient(const Place&, RowsOf<const double>, const double*, RowsOf<double>) const {}
  virtual void table_gradient(const Place&, Rows, Rows, float*) const {}
  virtual void table_gradient(const Place&, RowsOf<const double>, RowsOf<const double>, double*) const {}
};

template <class F>
inline constexpr Family kFamilyOf = Family::kScore;
template <>
inline constexpr Family kFamilyOf<Scope> = Family::kScope;
template <>
inline constexpr Family kFamilyOf<Align> = Family::kAlign;
template <>
inline constexpr Family kFamilyOf<Read> = Family::kRead;

// Stages by name, sorted: lists, tests and documents come out in one order.
template <class F>
class Registry {
 public:
  using Make = std::unique_ptr<F> (*)(const Term&);  // of a term that fits the card
  static const std::map<std::string, Make>& all() { return entries(); }
  struct Add {
    Add(Card card, Make make) {
      entries().emplace(std::string(card.name), make);
      add_card(kFamilyOf<F>, std::move(card));
    }
  };
  static std::unique_ptr<F> make(const Term& term) { return entries().at(term.name)(term); }

 private:
  static std::map<std::string, Make>& entries() {
    static std::map<std::string, Make> all;
    return all;
  }
};
template <class F>
std::unique_ptr<F> make_stage(const Term& term) {
  return Registry<F>::make(term);
}

struct Stages {
  Line line;
  std::string text;
  std::unique_ptr<Score> score;
  std::vector<std::unique_ptr<Scope>> scopes;
  std::unique_ptr<Align> align;
  std::unique_ptr<Read> read;

  // What the mechanism learns, stage after stage; kept, so that a call does not make it again.
  struct Part {
    std::size_t begin = 0, count = 0;
  };
  struct AllLearned {
    AttendSizes sizes;
    std::vector<Learned> all;
    Part score, read;
    std::vector<Part> scopes;
  };
  const AllLearned& learned(const AttendSizes& sizes) const;

 private:
  mutable std::mutex mutex_;
  mutable std::list<AllLearned> known_;
};

// The sizes with what is left out filled in.
AttendSizes completed(AttendSizes sizes);
std::int64_t hidden_of(const Term& term, const AttendSizes& sizes);  // of the line, or else of the layer

// The maps of a score that projects by itself: tokens [batch, length, in]·map [in, heads·width] to heads
// [batch, heads, length, width], and for keys of one group, of all heads.
Var to_heads(Var x, std::int64_t heads);
Var tokens_for_all(Var x, std::int64_t heads);                          // every head reads the tokens as they are
Var nothing(const Inputs& in, std::int64_t heads, std::int64_t count);  // rows of width 0, of all items
// A table [heads, longest, width] cut to `count` rows from `begin` on, as the rows of an item: [1, heads, count,
// width].
Var cut_table(Var table, std::int64_t begin, std::int64_t count);
// Throws unless the positions of a call are among those that its score was made for.
void check_longest(const Stages& stages, const Inputs& in);

}  // namespace regard
