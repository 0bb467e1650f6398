// What stages do to a tile of scores, f32 in vectors and f64 in plain loops. A hidden score is −∞ and its weight
// exactly 0; what has weight 0 is not read, so that nothing in it, NaN included, gets out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/dropout.h"
#include "kernels/gemm.h"
#include "kernels/views.h"
#include "regard/random.h"

namespace regard {

template <class T>
MatrixOf<T> as_matrix(RowsOf<T> x) {
  return {x.data, x.count, x.width, x.stride, 1};
}

bool all_finite(Rows x);

// Memory that is wanted later, fetched into the second cache a line at a time while products are computed.
struct Ahead {
  struct Span {
    const float* at = nullptr;
    std::size_t lines = 0;
  };
  static constexpr std::size_t kLine = 16;  // floats
  Span spans[8];
  std::size_t count = 0;

  void add(const void* at, std::size_t floats) {
    spans[count++] = {static_cast<const float*>(at), (floats + kLine - 1) / kLine};
  }
  // The next lines, at most so many; null if all is fetched.
  const float* take(std::size_t lines) {
    while (count > 0 && spans[count - 1].lines == 0) --count;
    if (count == 0) return nullptr;
    Span& last = spans[count - 1];
    const float* const at = last.at;
    lines = std::min(lines, last.lines);
    last.at += lines * kLine;
    last.lines -= lines;
    return at;
  }
};

// c += a·b, where an a of 0 takes nothing from b. `finite`: b holds neither NaN nor ∞, which makes it a plain product.
// With `fresh` c holds nothing yet and is taken for 0.
void selected_product(Matrix a, Rows b, bool finite, Tile c, bool fresh = false, Ahead* ahead = nullptr);

// s = q·kᵀ, keys in panels: what gemm computes, for tiles.
void product_tile(Rows q, PackedMatrix k, Tile s, Ahead* ahead = nullptr);

void scaled_copy(Rows x, float factor, Tile y);      // y = x·factor
void add_scaled_copy(Rows x, float factor, Tile y);  // y += x·factor
void scale_rows(Tile x, const float* factors);       // row i · factors[i]; a factor of 1 leaves it alone
void plain_zeros(Tile x);                            // −0 becomes 0
void dot_rows(Rows x, Rows y, float* to);            // to[i] = x_i·y_i
void normalise_rows(Rows x, float length, Tile y);   // y_i = length·x_i/‖x_i‖; 0 stays 0
void normalise_rows_backward(Rows x, Rows dy, float length, Tile dx);  // added; where dy is 0, x is not read

// Softmax with z = (s − peak)·sharpness, see Align.
void softmax_absorb(Tile s, float sharpness, float* peak, float* mass, float* factor);
void softmax_weigh(Tile s, float sharpness, const float* peak, const float* tau);  // s becomes exp(z − τ)
void softmax_pullback(Tile s, float sharpness, const float* peak, const float* tau, const float* delta, Tile dp);

// Where the mask is 0, the score becomes −∞.
void select_row(const std::int8_t* mask, std::size_t count, float* s);

// Uniform: how many scores of a row are not hidden; then these become 1/count, the others 0.
void count_visible(Rows s, float* count);
void share_visible(Tile s, const float* count);

// Dropout of a tile of at most 128 columns: column j of row i is element first + j of key.at(query + i), `first` a
// multiple of 16. What stays is noted in `kept`, 16 bytes a row, if that is not null; keep_tile does the same again.
inline constexpr std::size_t kKeptBytes = 16;
void drop_tile(Tile x, float p, RandomKey key, std::uint64_t query, std::uint64_t first, std::uint8_t* kept);
void keep_tile(Tile x, float p, const std::uint8_t* kept);

// s_ij = θᵀ tanh(q_i + k_j); the gradients are added.
void additive_tile(Rows q, Rows k, const float* theta, Tile s);
void additive_tile_backward(Rows q, Rows k, const float* theta, Rows ds, Tile dq, Tile dk, float* d_theta);

// Of the row: mass becomes τ = log mass, factor 1/mass; nothing visible: peak, τ and factor 0.
void softmax_settle(std::size_t count, float* peak, float* mass, float* factor);

namespace reference {

template <class T>
bool all_finite(RowsOf<const T> x) {
  for (std::size_t i = 0; i < x.count; ++i) {
    for (std::size_t c = 0; c < x.width; ++c) {
      if (!std::isfinite(x.row(i)[c])) return false;
    }
  }
  return true;
}

template <class T>
void selected_product(MatrixOf<const T> a, RowsOf<const T> b, RowsOf<T> c) {
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < a.columns; ++j) {
      const T factor = a.at(i, j);
      for (std::size_t k = 0; k < b.width && factor != 0; ++k) c.row(i)[k] += factor * b.row(j)[k];
    }
  }
}

template <class T>
void scaled_copy(RowsOf<const T> x, T factor, RowsOf<T> y) {
  for (std::size_t i = 0; i < x.count; ++i) {
    for (std::size_t c = 0; c < x.width; ++c) y.row(i)[c] = x.row(i)[c] * factor;
  }
}

template <class T>
void add_scaled_copy(RowsOf<const T> x, T factor, RowsOf<T> y) {
  for (std::size_t i = 0; i < x.count; ++i) {
    for (std::size_t c = 0; c < x.width; ++c) y.row(i)[c] += x.row(i)[c] * factor;
  }
}

template <class T>
void scale_rows(RowsOf<T> x, const T* factors) {
  for (std::size_t i = 0; i < x.count; ++i) {
    for (std::size_t c = 0; c < x.width && factors[i] != 1; ++c) x.row(i)[c] *= factors[i];
  }
}

template <class T>
void plain_zeros(RowsOf<T> x) {
  for (std::size_t i = 0; i < x.count; ++i) {
    for (std::size_t c = 0; c < x.width; ++c) x.row(i)[c] += T(0);
  }
}

template <class T>
void dot_rows(RowsOf<const T> x, RowsOf<const T> y, T* to) {
  for (std::size_t i = 0; i < x.count; ++i) {
    to[i] = 0;
    for (std::size_t c = 0; c < x.width; ++c) to[i] += x.row(i)[c] * y.row(i)[c];
  }
}

template <class T>
T length_of(const T* x, std::size_t n) {
  T sum = 0;
  for (std::size_t c = 0; c < n; ++c) sum += x[c] * x[c];
  return std::sqrt(sum);
}

template <class T>
void normalise_rows(RowsOf<const T> x, T length, RowsOf<T> y) {
  for (std::size_t i = 0; i < x.count; ++i) {
    const T own = length_of(x.row(i), x.width);
    for (std::size_t c = 0; c < x.width; ++c) y.row(i)[c] = own == 0 ? T(0) : x.row(i)[c] / own * length;
  }
}

// dx = (dy − u·(u·dy))·length/‖x‖, u = x/‖x‖
template <class T>
void normalise_rows_backward(RowsOf<const T> x, RowsOf<const T> dy, T length, RowsOf<T> dx) {
  for (std::size_t i = 0; i < x.count; ++i) {
    const T *from = x.row(i), *gradient = dy.row(i);
    if (std::all_of(gradient, gradient + x.width, [](T g) { return g == 0; })) continue;
    const T own = length_of(from, x.width);
    if (own == 0) continue;
    T along = 0;
    for (std::size_t c = 0; c < x.width; ++c) along += from[c] / own * gradient[c];
    for (std::size_t c = 0; c < x.width; ++c) dx.row(i)[c] += (gradient[c] - from[c] / own * along) * (length / own);
  }
}

template <class T>
void softmax_absorb(RowsOf<T> s, T sharpness, T* peak, T* mass, T* factor) {
  for (std::size_t i = 0; i < s.count; ++i) {
    T top = peak[i];
    for (std::size_t j = 0; j < s.width; ++j) top = s.row(i)[j] > top ? s.row(i)[j] : top;
    const bool nothing = top == -std::numeric_limits<T>::infinity();
    factor[i] = top == peak[i] ? T(1) : std::exp((peak[i] - top) * sharpness);
    T sum = 0;
    for (std::size_t j = 0; j < s.width; ++j) {
      sum += s.row(i)[j] = std::exp((s.row(i)[j] - (nothing ? T(0) : top)) * sharpness);
    }
    mass[i] = mass[i] * factor[i] + sum;
    peak[i] = top;
  }
}

template <class T>
void softmax_settle(std::size_t count, T* peak, T* mass, T* factor) {
  for (std::size_t i = 0; i < count; ++i) {
    const bool nothing = mass[i] == 0;
    if (nothing) peak[i] = 0;
    factor[i] = nothing ? T(0) : 1 / mass[i];
    mass[i] = nothing ? T(0) : std::log(mass[i]);
  }
}

template <class T>
void softmax_weigh(RowsOf<T> s, T sharpness, const T* peak, const T* tau) {
  for (std::size_t i = 0; i < s.count; ++i) {
    for (std::size_t j = 0; j < s.width; ++j) {
      T& x = s.row(i)[j];
      x = x == -std::numeric_limits<T>::infinity() ? T(0) : std::exp((x - peak[i]) * sharpness - tau[i]);
    }
  }
}

template <class T>
void softmax_pullback(RowsOf<T> s, T sharpness, const T* peak, const T* tau, const T* delta, RowsOf<T> dp) {
  softmax_weigh(s, sharpness, peak, tau);
  for (std::size_t i = 0; i < s.count; ++i) {
    for (std::size_t j = 0; j < s.width; ++j) {
      const T p = s.row(i)[j];
      dp.row(i)[j] = p == 0 ? T(0) : p * (dp.row(i)[j] - delta[i]) * sharpness;
    }
  }
}

template <class T>
void select_row(const std::int8_t* mask, std::size_t count, T* s) {
  for (std::size_t j = 0; j < count; ++j) s[j] = mask[j] == 0 ? -std::numeric_limits<T>::infinity() : s[j];
}

template <class T>
void count_visible(RowsOf<const T> s, T* count) {
  for (std::size_t i = 0; i < s.count; ++i) {
    count[i] = 0;
    for (std::size_t j = 0; j < s.width; ++j) count[i] += s.row(i)[j] == -std::numeric_limits<T>::infinity() ? 0 : 1;
  }
}

template <class T>
void share_visible(RowsOf<T> s, const T* count) {
  for (std::size_t i = 0; i < s.count; ++i) {
    for (std::size_t j = 0; j < s.width; ++j) {
      s.row(i)[j] = s.row(i)[j] == -std::numeric_limits<T>::infinity() ? T(0) : 1 / count[i];
    }
  }
}

template <class T>
void keep_tile(RowsOf<T> x, float p, const std::uint8_t* kept) {
  for (std::size_t i = 0; i < x.count; ++i) {
    for (std::size_t j = 0; j < x.width; ++j) {
      const bool stays = (kept[i * kKeptBytes + j / 8] >> (j % 8) & 1) != 0;
      x.row(i)[j] = stays ? x.row(i)[j] * (1 / (1 - T(p))) : T(0);
    }
  }
}

template <class T>
void drop_tile(RowsOf<T> x, float p, RandomKey key, std::uint64_t query, std::uint64_t first, std::uint8_t* kept) {
  for (std::size_t i = 0; i < x.count; ++i) {
    std::uint8_t own[kKeptBytes] = {};
    for (std::size_t j = 0; j < x.width; ++j) {
      const bool stays = random_bits(key.at(query + i), first + j) >= dropout_threshold(p);
      own[j / 8] = static_cast<std::uint8_t>(own[j / 8] | (stays ? 1 : 0) << (j % 8));
    }
    keep_tile<T>({x.row(i), 1, x.width, x.stride}, p, own);
    if (kept != nullptr) std::copy_n(own, kKeptBytes, kept + i * kKeptBytes);
  }
}

template <class T>
void additive_tile(RowsOf<const T> q, RowsOf<const T> k, const T* theta, RowsOf<T> s) {
  for (std::size_t i = 0; i < q.count; ++i) {
    for (std::size_t j = 0; j < k.count; ++j) {
      T sum = 0;
      for (std::size_t c = 0; c < q.width; ++c) sum += theta[c] * std::tanh(q.row(i)[c] + k.row(j)[c]);
      s.row(i)[j] = sum;
    }
  }
}

template <class T>
void additive_tile_backward(RowsOf<const T> q, RowsOf<const T> k, const T* theta, RowsOf<const T> ds, RowsOf<T> dq,
                            RowsOf<T> dk, T* d_theta) {
  for (std::size_t i = 0; i < q.count; ++i) {
    for (std::size_t j = 0; j < k.count; ++j) {
      for (std::size_t c = 0; c < q.width && ds.row(i)[j] != 0; ++c) {
        const T t = std::tanh(q.row(i)[c] + k.row(j)[c]);
        const T g = ds.row(i)[j] * theta[c] * (1 - t * t);
        dq.row(i)[c] += g;
        dk.row(j)[c] += g;
        d_theta[c] += ds.row(i)[j] * t;
      }
    }
  }
}

}  // namespace reference

inline bool all_finite(RowsOf<const double> x) { return reference::all_finite(x); }
inline void selected_product(MatrixOf<const double> a, RowsOf<const double> b, bool, RowsOf<double> c,
                             bool fresh = false, Ahead* = nullptr) {
  for (std::size_t i = 0; i < c.count && fresh; ++i) std::fill_n(c.row(i), c.width, 0.0);
  reference::selected_product(a, b, c);
}
inline void scaled_copy(RowsOf<const double> x, double factor, RowsOf<double> y) {
  reference::scaled_copy(x, factor, y);
}
inline void add_scaled_copy(RowsOf<const double> x, double factor, RowsOf<double> y) {
  reference::add_scaled_copy(x, factor, y);
}
inline void scale_rows(RowsOf<double> x, const double* factors) { reference::scale_rows(x, factors); }
inline void plain_zeros(RowsOf<double> x) { reference::plain_zeros(x); }
inline void dot_rows(RowsOf<const double> x, RowsOf<const double> y, double* to) { reference::dot_rows(x, y, to); }
inline void normalise_rows(RowsOf<const double> x, double length, RowsOf<double> y) {
  reference::normalise_rows(x, length, y);
}
inline void normalise_rows_backward(RowsOf<const double> x, RowsOf<const double> dy, double length, RowsOf<double> dx) {
  reference::normalise_rows_backward(x, dy, length, dx);
}
inline void softmax_absorb(RowsOf<double> s, double sharpness, double* peak, double* mass, double* factor) {
  reference::softmax_absorb(s, sharpness, peak, mass, factor);
}
inline void softmax_settle(std::size_t count, double* peak, double* mass, double* factor) {
  reference::softmax_settle(count, peak, mass, factor);
}
inline void softmax_weigh(RowsOf<double> s, double sharpness, const double* peak, const double* tau) {
  reference::softmax_weigh(s, sharpness, peak, tau);
}
inline void softmax_pullback(RowsOf<double> s, double sharpness, const double* peak, const double* tau,
                             const double* delta, RowsOf<double> dp) {
  reference::softmax_pullback(s, sharpness, peak, tau, delta, dp);
}
inline void select_row(const std::int8_t* mask, std::size_t count, double* s) { reference::select_row(mask, count, s); }
inline void count_visible(RowsOf<const double> s, double* count) { reference::count_visible(s, count); }
inline void share_visible(RowsOf<double> s, const double* count) { reference::share_visible(s, count); }
inline void keep_tile(RowsOf<double> x, float p, const std::uint8_t* kept) { reference::keep_tile(x, p, kept); }
inline void drop_tile(RowsOf<double> x, float p, RandomKey key, std::uint64_t query, std::uint64_t first,
                      std::uint8_t* kept) {
  reference::drop_tile(x, p, key, query, first, kept);
}
// Peak and τ of whole rows that are left as they were, in the steps that tiles of 128 keys take.
template <class T>
void softmax_solve(RowsOf<T> s, T sharpness, T* peak, T* tau) {
  constexpr std::size_t kStep = 128;
  T copy[kStep], factor;
  for (std::size_t i = 0; i < s.count; ++i) {
    peak[i] = -std::numeric_limits<T>::infinity();
    tau[i] = 0;
    for (std::size_t j = 0; j < s.width; j += kStep) {
      const std::size_t count = std::min(kStep, s.width - j);
      std::copy_n(s.row(i) + j, count, copy);
      softmax_absorb(RowsOf<T>{copy, 1, count, kStep}, sharpness, peak + i, tau + i, &factor);
    }
    softmax_settle(1, peak + i, tau + i, &factor);
  }
}

inline void additive_tile(RowsOf<const double> q, RowsOf<const double> k, const double* theta, RowsOf<double> s) {
  reference::additive_tile(q, k, theta, s);
}
inline void additive_tile_backward(RowsOf<const double> q, RowsOf<const double> k, const double* theta,
                                   RowsOf<const double> ds, RowsOf<double> dq, RowsOf<double> dk, double* d_theta) {
  reference::additive_tile_backward(q, k, theta, ds, dq, dk, d_theta);
}

}  // namespace regard
