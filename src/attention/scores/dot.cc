// dot: s = q·k (Luong et al. 2015). scaled_dot: s = q·k/√width, or times a scale of one's own (Vaswani et al. 2017).
#include <cmath>
#include <optional>

#include "attention/scores/product.h"

namespace regard {
namespace {

class Dot : public ProductScore {
 public:
  explicit Dot(std::optional<double> scale) : scale_(scale) {}

  void prepare_queries(Rows q, Tile to) const override { scale(q, to); }
  void prepare_queries(RowsOf<const double> q, RowsOf<double> to) const override { scale(q, to); }
  void finish_queries(Rows, Rows d_prepared, Tile dq) const override { add_scaled(d_prepared, dq); }
  void finish_queries(RowsOf<const double>, RowsOf<const double> d_prepared, RowsOf<double> dq) const override {
    add_scaled(d_prepared, dq);
  }

 private:
  template <class T>
  T factor(std::size_t width) const {  // no width: every score is 0 anyhow
    return static_cast<T>(scale_ ? *scale_ : width == 0 ? 1 : 1 / std::sqrt(static_cast<double>(width)));
  }
  template <class T>
  void scale(RowsOf<const T> q, RowsOf<T> to) const {
    scaled_copy(q, factor<T>(q.width), to);
  }
  template <class T>
  void add_scaled(RowsOf<const T> d_prepared, RowsOf<T> dq) const {
    add_scaled_copy(d_prepared, factor<T>(dq.width), dq);
  }

  std::optional<double> scale_;  // none: 1/√width
};

const Registry<Score>::Add add_dot({.name = "dot", .formula = "q·k", .paper = "Luong et al. 2015"},
                                   [](const Arguments& arguments) -> std::unique_ptr<Score> {
                                     check_arguments("dot", arguments, {});
                                     return std::make_unique<Dot>(1.0);
                                   });
const Registry<Score>::Add add_scaled_dot({.name = "scaled_dot", .formula = "q·k/√d", .paper = "Vaswani et al. 2017"},
                                          [](const Arguments& arguments) -> std::unique_ptr<Score> {
                                            check_arguments("scaled_dot", arguments, {.settings = {"scale"}});
                                            std::optional<double> scale;
                                            if (arguments.settings.contains("scale"))
                                              scale = setting("scaled_dot", arguments, "scale", 1);
                                            return std::make_unique<Dot>(scale);
                                          });

}  // namespace
}  // namespace regard
