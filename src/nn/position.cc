#include "regard/nn/position.h"

#include <cmath>
#include <mutex>
#include <vector>

#include "base/check.h"
#include "kernels/chunks.h"
#include "regard/autograd/ops.h"

namespace regard {

Tensor sinusoids(std::int64_t count, std::int64_t width) {
  check(count >= 0 && width >= 0, "sinusoids: asked for [", count, ", ", width, "]");
  Tensor made = Tensor::empty({count, width}, DType::kF64);
  double* to = made.data<double>();
  std::vector<double> speeds;
  for (std::int64_t c = 0; c < width; ++c) {
    const double exponent = static_cast<double>(c - c % 2) / static_cast<double>(width);
    speeds.push_back(std::pow(10000.0, -exponent));
  }
  in_row_chunks(static_cast<std::size_t>(count), speeds.size(), [&](std::size_t begin, std::size_t rows) {
    for (std::size_t p = begin; p < begin + rows; ++p) {
      for (std::size_t c = 0; c < speeds.size(); ++c) {
        const double angle = static_cast<double>(p) * speeds[c];
        to[p * speeds.size() + c] = c % 2 == 0 ? std::sin(angle) : std::cos(angle);
      }
    }
  });
  return made;
}

namespace {

struct Sinusoids {
  Tensor wide, narrow;
};

// The last ones are kept: an encoder and a decoder have the same, and they are a good part of loading a small model.
Sinusoids shared_sinusoids(std::int64_t count, std::int64_t width) {
  static std::mutex mutex;
  static Sinusoids last;
  const std::lock_guard lock(mutex);
  if (!last.wide.defined() || last.wide.shape() != Shape{count, width}) {
    last.wide = sinusoids(count, width);
    last.narrow = last.wide.to(DType::kF32);
  }
  return last;
}

}  // namespace

Position::Position(const Builder& builder, const PositionSettings& settings) : settings_(settings) {
  const auto& [kind, width, longest] = settings_;
  check(width >= 0 && longest >= 0, "Position: width ", width, " and longest ", longest, ", expected 0 or more");
  switch (kind) {
    case PositionKind::kNone:
      break;
    case PositionKind::kSinusoidal: {
      const Sinusoids shared = shared_sinusoids(longest, width);
      wide_ = shared.wide;
      narrow_ = shared.narrow;
      break;
    }
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

Var Position::operator()(Var x, std::span<const std::int32_t> places) const {
  if (settings_.kind == PositionKind::kNone) return x;
  const auto count = static_cast<std::int64_t>(places.size());
  check(x.shape() == Shape{count, settings_.width}, "Position: x is ", x.shape(), ", expected [", count, ", ",
        settings_.width, "]");
  Tape& tape = x.tape();
  const Tensor ids = tape.make({count}, DType::kI32);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t place = places[static_cast<std::size_t>(i)];
    check(place >= 0 && place < settings_.longest, "Position: position ", place, " is asked for, there are ",
          settings_.longest);
    ids.data<std::int32_t>()[i] = place;
  }
  const Var table = settings_.kind == PositionKind::kLearned
                        ? tape.use(*table_)
                        : tape.constant(x.dtype() == DType::kF64 ? wide_ : narrow_);
  return x + embedding(table, ids);
}

}  // namespace regard
