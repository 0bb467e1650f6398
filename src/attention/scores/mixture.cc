// mixture(score, score, …): Σ_m α_m·score_m, α the softmax of learned numbers, one set a head.    Tay et al. 2020
// Rows of the scores stand side by side in the rows of the mixture; its theta is α and then the thetas.
#include <algorithm>
#include <array>
#include <cstring>

#include "attention/mechanism.h"

namespace regard {
namespace {

class Mixture : public TileScore<Mixture> {
 public:
  explicit Mixture(const Term& term) {
    for (const Term& each : term.inner) {
      parts_.push_back(make_stage<Score>(each));
      learned_.push_back(parts_.back()->learned({.width = 1, .query_token = 1, .key_token = 1, .hidden = 1}).size());
    }
  }

  Needs needs() const override {
    Needs all;
    for (const auto& part : parts_) {
      const Needs more = part->needs();
      all = {all.rows || more.rows, all.query_tokens || more.query_tokens, all.key_tokens || more.key_tokens};
    }
    return all;
  }
  std::vector<Learned> learned(const AttendSizes& sizes) const override {
    std::vector<Learned> all = {{.name = "mixture", .shape = {sizes.heads, count()}, .start = Learned::Start::kZeros}};
    for (std::size_t m = 0; m < parts_.size(); ++m) {
      for (Learned each : parts_[m]->learned(sizes)) {
        each.name = text(m, '.', each.name);
        all.push_back(std::move(each));
      }
    }
    return all;
  }
  Longest longest() const override {
    Longest all;
    for (const auto& part : parts_) {
      const Longest own = part->longest();
      all = {std::min(all.queries, own.queries), std::min(all.keys, own.keys)};
    }
    return all;
  }
  void check_call(const Inputs& in) const override {
    for (const auto& part : parts_) part->check_call(in);
  }
  Widths widths(const AttendSizes& sizes) const override {
    Widths all{0, 0, count()};
    for (const auto& part : parts_) all = after(all, part->widths(sizes));
    return all;
  }
  Var lower_queries(const Inputs& in) const override {
    return side_by_side(in, in.queries, [](const Score& part, const Inputs& mine) { return part.lower_queries(mine); });
  }
  Var lower_keys(const Inputs& in) const override {
    return side_by_side(in, in.keys, [](const Score& part, const Inputs& mine) { return part.lower_keys(mine); });
  }
  Var lower_theta(const Inputs& in) const override {
    std::vector<Var> all = {softmax(in.learned[0])};
    for_each_part(in, [&](const Score& part, const Inputs& mine) {
      if (const Var theta = part.lower_theta(mine); theta.defined()) all.push_back(theta);
    });
    return concat(all, 1);
  }
  Var lower_bias(const Inputs& in) const override {
    const Var shares = softmax(in.learned[0]);
    Var all;
    std::int64_t m = 0;
    for_each_part(in, [&](const Score& part, const Inputs& mine) {
      const std::int64_t number = m++;
      const Var bias = part.lower_bias(mine);
      if (!bias.defined()) return;
      const Var mixed = bias * reshape(slice(shares, 1, number, number + 1), {1, in.sizes.heads, 1, 1});
      all = all.defined() ? all + mixed : mixed;
    });
    return all;
  }

  // The parts prepare their own columns.
  bool prepares_keys() const override {
    return std::any_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->tiles().prepares_keys(); });
  }
  void prepare_queries(const AttendSizes& sizes, Rows q, Tile to) const override { prepare(true, sizes, q, to); }
  void prepare_queries(const AttendSizes& sizes, RowsOf<const double> q, RowsOf<double> to) const override {
    prepare(true, sizes, q, to);
  }
  void prepare_keys(const AttendSizes& sizes, Rows k, Tile to) const override { prepare(false, sizes, k, to); }
  void prepare_keys(const AttendSizes& sizes, RowsOf<const double> k, RowsOf<double> to) const override {
    prepare(false, sizes, k, to);
  }
  void finish_queries(const AttendSizes& sizes, Rows q, Rows d, Tile dq) const override {
    finish(true, sizes, q, d, dq);
  }
  void finish_queries(const AttendSizes& sizes, RowsOf<const double> q, RowsOf<const double> d,
                      RowsOf<double> dq) const override {
    finish(true, sizes, q, d, dq);
  }
  void finish_keys(const AttendSizes& sizes, Rows k, Rows d, Tile dk) const override { finish(false, sizes, k, d, dk); }
  void finish_keys(const AttendSizes& sizes, RowsOf<const double> k, RowsOf<const double> d,
                   RowsOf<double> dk) const override {
    finish(false, sizes, k, d, dk);
  }

  template <class T>
  void tile(const Place& place, RowsOf<const T> q, const KeysOf<T>& k, const T* theta, RowsOf<T> s) const {
    for (std::size_t i = 0; i < s.count; ++i) std::fill_n(s.row(i), s.width, T(0));
    Scratch<T> scratch;
    for_each_part(*place.sizes, [&](std::size_t m, const Score& part, const Widths& at, const Widths& width) {
      const RowsOf<T> own = scratch.rows(s);
      part.tiles().forward(place, columns(q, at.q, width.q), keys_of(k, at, width), theta + at.theta, own);
      for (std::size_t i = 0; i < s.count; ++i) {
        for (std::size_t j = 0; j < s.width; ++j) s.row(i)[j] += theta[m] * own.row(i)[j];
      }
    });
  }
  template <class T>
  void spread(const Place& place, RowsOf<const T> q, bool q_finite, const KeysOf<T>& k, const T* theta,
              RowsOf<const T> ds, const ScoreGradients<T>& to) const {
    Scratch<T> scratch;
    for_each_part(*place.sizes, [&](std::size_t m, const Score& part, const Widths& at, const Widths& width) {
      const RowsOf<T> own = scratch.rows(ds);
      const RowsOf<const T> mine = columns(q, at.q, width.q);
      const KeysOf<T> keys = keys_of(k, at, width);
      part.tiles().forward(place, mine, keys, theta + at.theta, own);
      double share = 0;
      for (std::size_t i = 0; i < ds.count; ++i) {
        for (std::size_t j = 0; j < ds.width; ++j) {
          const T d = ds.row(i)[j];
          if (d != 0) share += static_cast<double>(d) * static_cast<double>(own.row(i)[j]);
          own.row(i)[j] = d * theta[m];
        }
      }
      to.theta[m] += static_cast<T>(share);
      part.tiles().backward(place, mine, q_finite, keys, theta + at.theta, RowsOf<const T>(own),
                            {columns(to.queries, at.q, width.q), columns(to.keys, at.k, width.k), to.theta + at.theta});
    });
  }

 private:
  template <class T>
  struct Scratch {
    std::array<T, kTallestTile * kKeyTile> memory;
    template <class Like>
    RowsOf<T> rows(const Like& like) {
      return {memory.data(), like.count, like.width, kKeyTile};
    }
  };
  template <class T>
  static RowsOf<T> columns(RowsOf<T> x, std::int64_t begin, std::int64_t width) {
    return {x.data + begin, x.count, static_cast<std::size_t>(width), x.stride};
  }
  template <class T>
  static KeysOf<T> keys_of(const KeysOf<T>& k, const Widths& at, const Widths& width) {
    return {columns(k.rows, at.k, width.k), {}, k.finite};
  }
  static Widths after(const Widths& at, const Widths& width) {
    return {at.q + width.q, at.k + width.k, at.theta + width.theta};
  }

  std::int64_t count() const { return static_cast<std::int64_t>(parts_.size()); }
  template <class Each>
  void for_each_part(const Inputs& in, Each each) const {
    std::size_t at = 1;
    for (std::size_t m = 0; m < parts_.size(); ++m) {
      each(*parts_[m], in.with(in.learned.subspan(at, learned_[m])));
      at += learned_[m];
    }
  }
  template <class Each>
  void for_each_part(const AttendSizes& sizes, Each each) const {
    Widths at{0, 0, count()};
    for (std::size_t m = 0; m < parts_.size(); ++m) {
      const Widths width = parts_[m]->widths(sizes);
      each(m, *parts_[m], at, width);
      at = after(at, width);
    }
  }
  // Rows of all items and heads where one part has them by item and another for all alike.
  template <class Lower>
  Var side_by_side(const Inputs& in, std::int64_t length, Lower lower) const {
    std::vector<Var> all;
    std::int64_t batch = 1, heads = 1;
    for_each_part(in, [&](const Score& part, const Inputs& mine) {
      all.push_back(lower(part, mine));
      batch = std::max(batch, all.back()[0]);
      heads = std::max(heads, all.back()[1]);
    });
    if (in.batch == 0) batch = 0;
    for (Var& each : all) {
      if (each[0] != batch || each[1] != heads) {
        each = each + in.tape->constant(zeros(in, {batch, heads, length, each[3]}, each[1]));
      }
    }
    return concat(all, 3);
  }
  static Tensor zeros(const Inputs& in, const Shape& shape, std::int64_t groups) {
    check(groups == shape[1] || groups == 1, "attend: mixture: ", shape[1], " heads do not share ", groups,
          " groups of keys");
    const Tensor made = in.tape->make(shape, in.type);
    std::memset(made.raw(), 0, made.bytes());
    return made;
  }
  template <class T>
  void prepare(bool queries, const AttendSizes& sizes, RowsOf<const T> x, RowsOf<T> to) const {
    for_each_part(sizes, [&](std::size_t, const Score& part, const Widths& at, const Widths& width) {
      if (queries) {
        part.tiles().prepare_queries(sizes, columns(x, at.q, width.q), columns(to, at.q, width.q));
      } else {
        part.tiles().prepare_keys(sizes, columns(x, at.k, width.k), columns(to, at.k, width.k));
      }
    });
  }
  template <class T>
  void finish(bool queries, const AttendSizes& sizes, RowsOf<const T> x, RowsOf<const T> d, RowsOf<T> to) const {
    for_each_part(sizes, [&](std::size_t, const Score& part, const Widths& at, const Widths& width) {
      if (queries) {
        part.tiles().finish_queries(sizes, columns(x, at.q, width.q), columns(d, at.q, width.q),
                                    columns(to, at.q, width.q));
      } else {
        part.tiles().finish_keys(sizes, columns(x, at.k, width.k), columns(d, at.k, width.k),
                                 columns(to, at.k, width.k));
      }
    });
  }

  std::vector<std::unique_ptr<Score>> parts_;
  std::vector<std::size_t> learned_;  // how many tensors each of them learns
};

const Registry<Score>::Add add({.name = "mixture",
                                .formula = "Σ_m α_m·score_m, α = softmax of learned numbers",
                                .paper = "Tay et al. 2020",
                                .kernel = "those of its scores, one after another",
                                .least_inner = 2,
                                .most_inner = kMostInner,
                                .inner_example = "scaled_dot, additive"},
                               [](const Term& term) -> std::unique_ptr<Score> {
                                 return std::make_unique<Mixture>(term);
                               });

}  // namespace
}  // namespace regard
