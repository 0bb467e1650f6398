// random_synth: e = R, a matrix that no input changes, Tay et al. 2020: scores of 0, and R is the bias.
#include "attention/mechanism.h"

namespace regard {
namespace {

class RandomSynthesizer : public TileScore<RandomSynthesizer> {
 public:
  explicit RandomSynthesizer(const Term& term)
      : longest_(static_cast<std::int64_t>(*number_of(term, "length"))),
        trains_(word_of(term, "learning") == "trainable") {}

  Needs needs() const override { return {}; }
  std::vector<Learned> learned(const AttendSizes& sizes) const override {
    return {{.name = "random",
             .shape = {sizes.heads, longest_, longest_},
             .start = Learned::Start::kNormal,
             .size = 1,
             .trains = trains_}};
  }
  Widths widths(const AttendSizes&) const override { return {0, 0, 0}; }
  Longest longest() const override { return {longest_, longest_}; }
  Var lower_queries(const Inputs& in) const override { return nothing(in, in.sizes.heads, in.queries); }
  Var lower_keys(const Inputs& in) const override { return nothing(in, in.sizes.heads, in.keys); }
  Var lower_bias(const Inputs& in) const override {
    const Var rows = slice(slice(in.learned[0], 1, in.offset, in.offset + in.queries), 2, 0, in.keys);
    return reshape(rows, {1, in.sizes.heads, in.queries, in.keys});
  }

  template <class T>
  void tile(const Place&, RowsOf<const T>, const KeysOf<T>&, const T*, RowsOf<T> s) const {
    for (std::size_t i = 0; i < s.count; ++i) std::fill_n(s.row(i), s.width, T(0));
  }
  template <class T>
  void spread(const Place&, RowsOf<const T>, bool, const KeysOf<T>&, const T*, RowsOf<const T>,
              const ScoreGradients<T>&) const {}

 private:
  std::int64_t longest_;
  bool trains_;
};

const Registry<Score>::Add add({.name = "random_synth",
                                .formula = "e = R, a matrix that no input changes",
                                .paper = "Tay et al. 2020",
                                .kernel = "a bias",
                                .arguments = {longest(), learning()}},
                               [](const Term& term) -> std::unique_ptr<Score> {
                                 return std::make_unique<RandomSynthesizer>(term);
                               });

}  // namespace
}  // namespace regard
