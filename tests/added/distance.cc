// A mechanism that the library does not have, as somebody would add it: distance: s = −‖q − k‖²/2. One file; everything
// else comes from its registration (added_test.cc looks).
#include "attention/mechanism.h"

namespace regard {
namespace {

struct Distance : TileScore<Distance> {
  template <class T>
  void tile(const Place&, RowsOf<const T> q, const KeysOf<T>& k, const T*, RowsOf<T> s) const {
    for (std::size_t i = 0; i < q.count; ++i) {
      for (std::size_t j = 0; j < k.rows.count; ++j) {
        T sum = 0;
        for (std::size_t c = 0; c < q.width; ++c) {
          const T apart = q.row(i)[c] - k.rows.row(j)[c];
          sum += apart * apart;
        }
        s.row(i)[j] = -sum / 2;
      }
    }
  }
  template <class T>
  void spread(const Place&, RowsOf<const T> q, bool, const KeysOf<T>& k, const T*, RowsOf<const T> ds,
              const ScoreGradients<T>& to) const {
    for (std::size_t i = 0; i < q.count; ++i) {
      for (std::size_t j = 0; j < k.rows.count; ++j) {
        for (std::size_t c = 0; c < q.width && ds.row(i)[j] != 0; ++c) {
          const T apart = ds.row(i)[j] * (q.row(i)[c] - k.rows.row(j)[c]);
          to.queries.row(i)[c] -= apart;
          to.keys.row(j)[c] += apart;
        }
      }
    }
  }
};

const Registry<Score>::Add add(
    {.name = "distance", .formula = "−‖q − k‖²/2", .paper = "Tsai et al. 2019", .kernel = "plain loops"},
    [](const Term&) -> std::unique_ptr<Score> { return std::make_unique<Distance>(); });

}  // namespace
}  // namespace regard
