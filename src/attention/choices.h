// Hard attention's part of a row: keys that are drawn from its weights, what is read of them, and estimates of the
// gradient that a choice does not have.
//
// Drawing: the key that argmax_j log p_j + g_j names, g of Gumbel's distribution, is a sample of p (Gumbel 1954); with
// g = −log E it is the one with the least E_j/p_j, E_j exponential. E_j = −log(1 − u_j) ≥ u_j, so a logarithm is taken
// only where u_j/p_j is below the least so far. u_j is a counter function of (the row's key, sample, j's place in its
// sequence): the same whoever computes it, beside whom and in which tiles.
//
// All in double and in the order of the keys: the same bits on every target.
#pragma once

#include <cstdint>
#include <span>

#include "regard/attention/mechanism.h"
#include "regard/random.h"

namespace regard {

// How an align that reads only some keys chooses them.
struct Choosing {
  enum class Estimator { kReinforce, kGumbel };
  std::int64_t samples = 1;
  Estimator estimator = Estimator::kReinforce;
  bool largest = true;     // who does not draw reads the likeliest key; else all, as softmax does
  double temperature = 1;  // of kGumbel
};

// Where the numbers of a row come from.
struct RowNoise {
  RandomKey key;
  std::int64_t first = 0;  // the place of column 0 in its sequence
};

// A row of weights and the keys that its columns are. All functions have p = 0 for hidden keys; a NaN that is visible
// makes the row NaN, and nothing is chosen.
template <class T>
struct ChoiceRow {
  T* p;
  Range keys;
};

// choices[k] = the number of a key drawn from p; −1 if none is visible.
template <class T>
void draw_keys(const ChoiceRow<T>& row, const RowNoise& noise, std::span<std::int32_t> choices);
template <class T>
void likeliest_key(const ChoiceRow<T>& row, std::span<std::int32_t> choices);  // the first of equal ones

// p becomes the weights that are read with: of every key, how many of the choices it is, divided by their number.
template <class T>
void read_choices(const ChoiceRow<T>& row, std::span<const std::int32_t> choices);

// ds = advantage·Σ_samples(onehot − p) + entropy·dH(p)/ds (Williams 1992, Xu et al. 2015), H = −Σ p·log p and its
// gradient −p·(log p + H). p becomes the weights.
template <class T>
void reinforce_pullback(const ChoiceRow<T>& row, std::span<const std::int32_t> choices, double advantage,
                        double entropy, T* ds);

// ds = mean over the samples of the pullback of dp through y = softmax((log p + g)/temperature), as if y had been read
// and not the key that is its largest (Jang et al. 2017, Maddison et al. 2017). p becomes the weights, dp becomes ds.
template <class T>
void gumbel_pullback(const ChoiceRow<T>& row, const RowNoise& noise, std::span<const std::int32_t> choices,
                     double temperature, T* dp);

}  // namespace regard
