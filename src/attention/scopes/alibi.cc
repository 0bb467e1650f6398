// alibi: s − slope·|j − i|, head h of H with the slope 2^(−8(h + 1)/H).    Press, Smith and Lewis 2022
#include <cmath>

#include "attention/mechanism.h"

namespace regard {
namespace {

class Alibi : public Scope {
 public:
  Cover cover(const Place&) const override { return Cover::kSome; }
  void add(const Place& place, Tile s) const override { lean(place, s); }
  void add(const Place& place, RowsOf<double> s) const override { lean(place, s); }

 private:
  template <class T>
  static void lean(const Place& place, RowsOf<T> s) {
    const double power = -8.0 * static_cast<double>(place.head + 1) / static_cast<double>(place.heads);
    const T slope = static_cast<T>(std::exp2(power));
    for (std::size_t i = 0; i < s.count; ++i) {
      const std::int64_t centre = place.queries.begin + static_cast<std::int64_t>(i) + place.offset - place.keys.begin;
      for (std::size_t j = 0; j < s.width; ++j) {
        s.row(i)[j] -= slope * static_cast<T>(std::abs(static_cast<std::int64_t>(j) - centre));
      }
    }
  }
};

const Registry<Scope>::Add add({.name = "alibi", .formula = "s − slope·|j − i|", .paper = "Press et al. 2022"},
                               [](const Arguments& arguments) -> std::unique_ptr<Scope> {
                                 check_arguments("alibi", arguments, {});
                                 return std::make_unique<Alibi>();
                               });

}  // namespace
}  // namespace regard
