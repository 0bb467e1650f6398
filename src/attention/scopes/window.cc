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

template <int which>
std::unique_ptr<Scope> make(const Arguments& arguments) {
  constexpr const char* kNames[] = {"window", "local_m"};
  check_arguments(kNames[which], arguments, {.numbers = 1});
  return std::make_unique<Window>(whole_number(kNames[which], arguments, 0));
}

const Registry<Scope>::Add add_window({.name = "window", .formula = "|j − i| ≤ D", .paper = "Beltagy et al. 2020"},
                                      make<0>);
const Registry<Scope>::Add add_local({.name = "local_m", .formula = "|j − i| ≤ D", .paper = "Luong et al. 2015"},
                                     make<1>);

}  // namespace
}  // namespace regard
