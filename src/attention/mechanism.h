// The stages of attention. Each works on one tile of scores while it is in the cache: a virtual call a tile is nothing
// beside the work in it, and families add up instead of multiplying. Stages are const and own no memory.
//
//     s = score(q, k)   ->   scopes select and add   ->   align makes weights   ->   out += p·v
//
// A new stage is one file that ends in `const Registry<Score>::Add add({…card…}, make);`. f32 runs kernels, f64 plain
// references: every stage has both, so that gradients can be checked in double precision.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attention/tiles.h"
#include "base/check.h"
#include "base/suggest.h"
#include "kernels/gemm.h"
#include "kernels/views.h"
#include "regard/attention/mechanism.h"

namespace regard {

template <class T>
inline constexpr T kHidden = -std::numeric_limits<T>::infinity();

// Which tile of which map. Query i stands at place i + offset among the keys.
struct Place {
  std::int64_t item = 0;
  std::int64_t head = 0;
  std::int64_t heads = 1;
  Range queries, keys;
  std::int64_t offset = 0;
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
  T* theta = nullptr;  // [width]; null: nobody wants it
};

struct Score {
  virtual ~Score() = default;
  virtual bool is_product() const { return false; }   // keys are wanted in panels
  virtual bool takes_theta() const { return false; }  // [width]
  // Rows as the tiles want them (scaled, normalised), and back from the gradient of these to that of the rows.
  virtual bool prepares_keys() const { return false; }
  virtual void prepare_queries(Rows q, Tile to) const { copy_rows(q, to); }
  virtual void prepare_queries(RowsOf<const double> q, RowsOf<double> to) const { copy_rows(q, to); }
  virtual void prepare_keys(Rows k, Tile to) const { copy_rows(k, to); }
  virtual void prepare_keys(RowsOf<const double> k, RowsOf<double> to) const { copy_rows(k, to); }
  virtual void finish_queries(Rows q, Rows d_prepared, Tile dq) const { add_rows(q, d_prepared, dq); }
  virtual void finish_queries(RowsOf<const double> q, RowsOf<const double> d_prepared, RowsOf<double> dq) const {
    add_rows(q, d_prepared, dq);
  }
  virtual void finish_keys(Rows k, Rows d_prepared, Tile dk) const { add_rows(k, d_prepared, dk); }
  virtual void finish_keys(RowsOf<const double> k, RowsOf<const double> d_prepared, RowsOf<double> dk) const {
    add_rows(k, d_prepared, dk);
  }
  // s[i, j] = score(q_i, k_j); then ds[i, j] to gradients. What has ds = 0 adds nothing, whatever q and k hold.
  virtual void forward(Rows q, const KeysOf<float>& k, const float* theta, Tile s) const = 0;
  virtual void forward(RowsOf<const double> q, const KeysOf<double>& k, const double* theta,
                       RowsOf<double> s) const = 0;
  virtual void backward(Rows q, bool q_finite, const KeysOf<float>& k, const float* theta, Rows ds,
                        const ScoreGradients<float>& to) const = 0;
  virtual void backward(RowsOf<const double> q, bool q_finite, const KeysOf<double>& k, const double* theta,
                        RowsOf<const double> ds, const ScoreGradients<double>& to) const = 0;

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

// What a call has beside queries, keys and values; null or not defined: nothing.
struct Given {
  std::int64_t queries = 0, keys = 0;
  bool offset = false, lengths = false, documents = false, mask = false;
};

struct Scope {
  enum class Cover { kNone, kAll, kSome };  // nothing visible: the tile is skipped; nothing to add; neither
  virtual ~Scope() = default;
  virtual void check_call(const Given&) const {}
  // Of the keys [0, keys) those that any query of the block may see, or a few more.
  virtual Range visible(const Place& block) const { return block.keys; }
  virtual Cover cover(const Place&) const { return Cover::kAll; }
  // Selects: what is hidden becomes −∞ whatever was there.
  virtual void add(const Place&, Tile) const {}
  virtual void add(const Place&, RowsOf<double>) const {}
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
  // Peak and τ of whole rows. A row in which nothing is visible: both 0.
  virtual bool needs_scores() const { return true; }  // else any will do: only what is hidden matters
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
};

struct Card {
  std::string_view name, formula, paper;
};

// Stages by name, sorted: lists, tests and documents come out in one order.
template <class Family>
class Registry {
 public:
  using Make = std::unique_ptr<Family> (*)(const Arguments&);
  struct Entry {
    Card card;
    Make make;
  };
  static const std::map<std::string, Entry>& all() { return entries(); }
  struct Add {
    Add(const Card& card, Make make) { entries().emplace(std::string(card.name), Entry{card, make}); }
  };
  static std::unique_ptr<Family> make(const Term& term, const char* family) {
    const auto found = entries().find(term.name);
    if (found != entries().end()) return found->second.make(term.arguments);
    std::vector<std::string> known;
    std::string list;
    for (const auto& [name, entry] : entries()) {
      known.push_back(name);
      list += (list.empty() ? "" : ", ") + name;
    }
    const std::string near = closest(term.name, known);
    fail(ErrorKind::kInput, "unknown ", family, " '", term.name, near.empty() ? "'" : "'; did you mean '" + near + "'?",
         near.empty() ? "; known: " : " known: ", list);
  }

 private:
  static std::map<std::string, Entry>& entries() {
    static std::map<std::string, Entry> all;
    return all;
  }
};

struct Stages {
  std::unique_ptr<Score> score;
  std::vector<std::unique_ptr<Scope>> scopes;
  std::unique_ptr<Align> align;
};

// For those who make stages: what may stand behind a name.
struct Allowed {
  std::size_t numbers = 0;
  std::vector<std::string> settings = {};
};
void check_arguments(std::string_view name, const Arguments& arguments, const Allowed& allowed);  // exactly the numbers
double setting(std::string_view name, const Arguments& arguments, const std::string& key, double otherwise);
std::int64_t whole_number(std::string_view name, const Arguments& arguments, std::size_t which);  // not below 0

}  // namespace regard
