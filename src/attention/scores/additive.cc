// additive: s = vᵀ tanh(W_q q + W_k k + b), Bahdanau et al. 2015. concat: s = vᵀ tanh(W[q; k]), Luong et al. 2015, is
// the same with the W cut in two and no b. The maps run once a row instead of once a pair.
#include "attention/mechanism.h"

namespace regard {
namespace {

class Additive : public TileScore<Additive> {
 public:
  Additive(Term term, bool bias) : term_(std::move(term)), bias_(bias) {}

  Needs needs() const override { return {.query_tokens = true, .key_tokens = true}; }
  std::vector<Learned> learned(const AttendSizes& sizes) const override {
    const std::int64_t hidden = hidden_of(term_, sizes), width = sizes.heads * hidden;
    std::vector<Learned> all = {{.name = "query", .shape = {sizes.query_token, width}},
                                {.name = "key", .shape = {sizes.key_token, width}},
                                {.name = "theta",
                                 .shape = {sizes.heads, hidden},
                                 .start = Learned::Start::kUniform,
                                 .size = std::sqrt(3.0 / static_cast<double>(std::max<std::int64_t>(1, hidden)))}};
    if (bias_) all.push_back({.name = "bias", .shape = {width}, .start = Learned::Start::kZeros});
    return all;
  }
  Widths widths(const AttendSizes& sizes) const override {
    const std::int64_t hidden = hidden_of(term_, sizes);
    return {hidden, hidden, hidden};
  }
  Var lower_queries(const Inputs& in) const override {
    return to_heads(matmul(in.query_tokens, in.learned[0]), in.sizes.heads);
  }
  Var lower_keys(const Inputs& in) const override {
    return to_heads(matmul(in.key_tokens, in.learned[1], {.bias = bias_ ? in.learned[3] : Var()}), in.sizes.heads);
  }
  Var lower_theta(const Inputs& in) const override { return in.learned[2]; }

  template <class T>
  void tile(const Place&, RowsOf<const T> q, const KeysOf<T>& k, const T* theta, RowsOf<T> s) const {
    additive_tile(q, k.rows, theta, s);
  }
  template <class T>
  void spread(const Place&, RowsOf<const T> q, bool, const KeysOf<T>& k, const T* theta, RowsOf<const T> ds,
              const ScoreGradients<T>& to) const {
    additive_tile_backward(q, k.rows, theta, ds, to.queries, to.keys, to.theta);
  }

 private:
  Term term_;
  bool bias_;
};

const Registry<Score>::Add add_additive({.name = "additive",
                                         .formula = "vᵀ tanh(W_q q + W_k k + b)",
                                         .paper = "Bahdanau et al. 2015",
                                         .kernel = "additive tiles",
                                         .arguments = {hidden()}},
                                        [](const Term& term) -> std::unique_ptr<Score> {
                                          return std::make_unique<Additive>(term, true);
                                        });
const Registry<Score>::Add add_concat({.name = "concat",
                                       .formula = "vᵀ tanh(W[q; k])",
                                       .paper = "Luong et al. 2015",
                                       .kernel = "additive tiles",
                                       .arguments = {hidden()}},
                                      [](const Term& term) -> std::unique_ptr<Score> {
                                        return std::make_unique<Additive>(term, false);
                                      });

}  // namespace
}  // namespace regard
