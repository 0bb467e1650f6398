// factorized_dense_synth: e_i[j] = A(x_i)[j div b]·B(x_i)[j mod b], A and B two layers each, Tay et al. 2020. Every
// pair of A's and B's numbers occurs once: a + b numbers a token give a·b scores.
#include "attention/mechanism.h"

namespace regard {
namespace {

class FactorizedDenseSynthesizer : public TileScore<FactorizedDenseSynthesizer> {
 public:
  explicit FactorizedDenseSynthesizer(const Term& term)
      : term_(term),
        a_(static_cast<std::int64_t>(*number_of(term, "a"))),
        b_(static_cast<std::int64_t>(*number_of(term, "b"))) {}

  Needs needs() const override { return {.query_tokens = true}; }
  std::vector<Learned> learned(const AttendSizes& sizes) const override {
    const std::int64_t width = sizes.heads * hidden_of(term_, sizes);
    const auto start = Learned::Start::kZeros;
    return {{.name = "in", .shape = {sizes.query_token, width}},
            {.name = "in_bias", .shape = {width}, .start = start},
            {.name = "out", .shape = {sizes.heads, width / std::max<std::int64_t>(1, sizes.heads), a_ + b_}},
            {.name = "out_bias", .shape = {sizes.heads, 1, a_ + b_}, .start = start}};
  }
  Widths widths(const AttendSizes&) const override { return {a_ + b_, 0, 0}; }
  Longest longest() const override { return {.keys = a_ * b_}; }
  Var lower_queries(const Inputs& in) const override {  // [A, B] side by side
    const Var inner = to_heads(relu(matmul(in.query_tokens, in.learned[0], {.bias = in.learned[1]})), in.sizes.heads);
    const std::int64_t rows = inner[0] * inner[2];
    const Var by_head = reshape(transpose(inner, 0, 1), {inner[1], rows, inner[3]});
    const Var both = matmul(by_head, in.learned[2]) + in.learned[3];
    return transpose(reshape(both, {inner[1], inner[0], inner[2], a_ + b_}), 0, 1);
  }
  Var lower_keys(const Inputs& in) const override { return nothing(in, in.sizes.heads, in.keys); }

  template <class T>
  void tile(const Place& place, RowsOf<const T> q, const KeysOf<T>&, const T*, RowsOf<T> s) const {
    for (std::size_t i = 0; i < s.count; ++i) {
      for_each_run(place, [&](std::size_t j, std::size_t a, std::size_t b, std::size_t count) {
        const T shared = q.row(i)[a];
        const T* const own = q.row(i) + b;
        T* const to = s.row(i) + j;
        for (std::size_t k = 0; k < count; ++k) to[k] = shared * own[k];
      });
    }
  }
  template <class T>
  void spread(const Place& place, RowsOf<const T> q, bool, const KeysOf<T>&, const T*, RowsOf<const T> ds,
              const ScoreGradients<T>& to) const {
    for (std::size_t i = 0; i < ds.count; ++i) {
      for_each_run(place, [&](std::size_t j, std::size_t a, std::size_t b, std::size_t count) {
        const T shared = q.row(i)[a];
        const T *const d = ds.row(i) + j, *const own = q.row(i) + b;
        T* const d_own = to.queries.row(i) + b;
        T d_shared = to.queries.row(i)[a];
        for (std::size_t k = 0; k < count; ++k) d_own[k] += d[k] == 0 ? T(0) : d[k] * shared;
        for (std::size_t k = 0; k < count; ++k) d_shared += d[k] == 0 ? T(0) : d[k] * own[k];
        to.queries.row(i)[a] = d_shared;
      });
    }
  }

 private:
  // The keys of a tile, in runs that share A's number: the first of a run, where A's and the first of B's numbers
  // stand, and how many keys it has.
  template <class Each>
  void for_each_run(const Place& place, Each each) const {
    for (std::int64_t j = place.keys.begin; j < place.keys.end;) {
      const std::int64_t end = std::min(place.keys.end, (j / b_ + 1) * b_);
      each(static_cast<std::size_t>(j - place.keys.begin), static_cast<std::size_t>(j / b_),
           static_cast<std::size_t>(a_ + j % b_), static_cast<std::size_t>(end - j));
      j = end;
    }
  }

  Term term_;
  std::int64_t a_, b_;
};

const Registry<Score>::Add add({.name = "factorized_dense_synth",
                                .formula = "e_i[j] = A(x_i)[j div b]·B(x_i)[j mod b]",
                                .paper = "Tay et al. 2020",
                                .kernel = "outer tiles",
                                .arguments = {positions("a", "how many numbers A gives"),
                                              {.key = "b",
                                               .required = true,
                                               .least = 1,
                                               .most = kMostPositions,
                                               .meaning = "how many numbers B gives; a·b is the longest sequence",
                                               .grows = true},
                                              hidden()}},
                               [](const Term& term) -> std::unique_ptr<Score> {
                                 return std::make_unique<FactorizedDenseSynthesizer>(term);
                               });

}  // namespace
}  // namespace regard
