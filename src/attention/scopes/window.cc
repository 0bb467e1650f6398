// window:D: |j − i| ≤ D. local_m:D is the same under the name of Luong et al. 2015: monotonic alignment.
#include "attention/mechanism.h"

namespace regard {
namespace {

class Window : public IntervalScope<Window> {
 public:
  explicit Window(std::int64_t distance) : distance_(distance) {}
  Range seen(std::int64_t place) const { return {place - distance_, place + distance_ + 1}; }

 private:
  std::int64_t distance_;
};

std::unique_ptr<Scope> make(const Term& term) {
  return std::make_unique<Window>(static_cast<std::int64_t>(*number_of(term, "distance")));
}
Argument distance() {
  return {.key = "distance",
          .required = true,
          .least = 0,
          .most = kMostPositions,
          .meaning = "how far a query sees to either side"};
}

const Registry<Scope>::Add add_window({.name = "window",
                                       .formula = "|j − i| ≤ distance",
                                       .paper = "Beltagy et al. 2020",
                                       .kernel = "whole tiles skipped",
                                       .arguments = {distance()}},
                                      make);
const Registry<Scope>::Add add_local({.name = "local_m",
                                      .formula = "|j − i| ≤ distance: window under its first name",
                                      .paper = "Luong et al. 2015",
                                      .kernel = "whole tiles skipped",
                                      .arguments = {distance()},
                                      .same_as = "window"},
                                     make);

}  // namespace
}  // namespace regard
