#include "regard/nn/position.h"

#include <bit>
#include <cmath>

#include "base/check.h"

namespace regard {

Tensor sinusoids(std::int64_t count, std::int64_t width) {
  check(count >= 0 && width >= 0, "sinusoids: asked for [", count, ", ", width, "]");
  Tensor made = Tensor::empty({count, width}, DType::kF64);
  double* to = made.data<double>();
  for (std::int64_t p = 0; p < count; ++p) {
    for (std::int64_t c = 0; c < width; ++c) {
      const double exponent = static_cast<double>(c - c % 2) / static_cast<double>(width);
      const double angle = static_cast<double>(p) * std::pow(10000.0, -exponent);
      *to++ = c % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
  }
  return made;
}

Position::Position(const Builder& builder, const PositionSettings& settings) : settings_(settings) {
  const auto& [kind, width, longest] = settings_;
  check(width >= 0 && longest >= 0, "Position: width ", width, " and longest ", longest, ", expected 0 or more");
  switch (kind) {
    case PositionKind::kNone:
      break;
    case PositionKind::kSinusoidal:
      wide_ = sinusoids(longest, width);
      narrow_ = wide_.to(DType::kF32);
      break;
    case PositionKind::kLearned:
      table_ = &builder.normal("table", {longest, width}, 0.02);
      break;
  }
}

Var Position::operator()(Var x, std::int64_t first) const {
  if (settings_.kind == PositionKind::kNone) return x;
  const Shape& shape = x.shape();
  check(shape.rank() >= 2 && shape[-1] == settings_.width, "Position: x is ", shape, ", expected [..., time, ",
        settings_.width, "]");
  const std::int64_t time = shape[-2];
  check(first >= 0 && first <= settings_.longest - time, "Position: positions ", first, " to ", first + time,
        " (not included) are asked for, there are ", settings_.longest);
  Tape& tape = x.tape();
  if (settings_.kind == PositionKind::kLearned) return x + slice(tape.use(*table_), 0, first, first + time);
  const Tensor& table = x.dtype() == DType::kF64 ? wide_ : narrow_;
  return x + tape.constant(table.slice(0, first, first + time));
}

Tensor alibi_slopes(std::int64_t heads) {
  constexpr std::int64_t kMostHeads = 1 << 16;
  check(heads >= 0 && heads <= kMostHeads, "alibi_slopes: ", heads, " heads, expected 0 to ", kMostHeads);
  Tensor slopes = Tensor::empty({heads});
  const auto below = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  for (std::int64_t h = 0; h < heads; ++h) {
    const double exponent = h < below ? -8.0 * static_cast<double>(h + 1) / static_cast<double>(below)
                                      : -4.0 * static_cast<double>(2 * (h - below) + 1) / static_cast<double>(below);
    slopes.data<float>()[h] = static_cast<float>(std::exp2(exponent));
  }
  return slopes;
}

}  // namespace regard
