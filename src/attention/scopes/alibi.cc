// alibi: s − m_h·|j − i|. With H heads, H a power of two, m_h = 2^(−8h/H) for h = 1 … H; else the slopes of the power
// below, then every second of those of the power above.    Press, Smith and Lewis 2022
#include <bit>
#include <cmath>

#include "attention/mechanism.h"

namespace regard {
namespace {

double slope_of(std::int64_t head, std::int64_t heads) {
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  const auto slope = [](std::int64_t number, std::int64_t of) {
    return std::exp2(-8.0 * static_cast<double>(number) / static_cast<double>(of));
  };
  return head < power ? slope(head + 1, power) : slope(2 * (head - power) + 1, 2 * power);
}

class Alibi : public Scope {
 public:
  Cover cover(const Place&) const override { return Cover::kSome; }
  void add(const Place& place, Tile s) const override { lean(place, s); }
  void add(const Place& place, RowsOf<double> s) const override { lean(place, s); }

 private:
  template <class T>
  static void lean(const Place& place, RowsOf<T> s) {
    const T slope = static_cast<T>(slope_of(place.head, place.sizes->heads));
    for (std::size_t i = 0; i < s.count; ++i) {
      const std::int64_t centre = place.queries.begin + static_cast<std::int64_t>(i) + place.offset - place.keys.begin;
      for (std::size_t j = 0; j < s.width; ++j) {
        s.row(i)[j] -= slope * static_cast<T>(std::abs(static_cast<std::int64_t>(j) - centre));
      }
    }
  }
};

const Registry<Scope>::Add add({.name = "alibi",
                                .formula = "−m_h·|i − j|, a slope m_h a head",
                                .paper = "Press et al. 2022",
                                .kernel = "added to the tile"},
                               [](const Term&) -> std::unique_ptr<Scope> { return std::make_unique<Alibi>(); });

}  // namespace
}  // namespace regard
