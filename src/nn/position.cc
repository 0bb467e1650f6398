#include "regard/nn/position.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <mutex>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "kernels/chunks.h"
#include "regard/autograd/ops.h"

namespace regard {

namespace {

template <class T>
Tensor rows_of_sinusoids(std::int64_t count, std::int64_t width) {
  Tensor made = Tensor::empty({count, width}, kDTypeOf<T>);
  T* to = made.data<T>();
  std::vector<double> speeds;
  for (std::int64_t c = 0; c < width; ++c) {
    const double exponent = static_cast<double>(c - c % 2) / static_cast<double>(width);
    speeds.push_back(std::pow(10000.0, -exponent));
  }
  in_row_chunks(static_cast<std::size_t>(count), speeds.size(), [&](std::size_t begin, std::size_t rows) {
    for (std::size_t p = begin; p < begin + rows; ++p) {
      for (std::size_t c = 0; c < speeds.size(); ++c) {
        const double angle = static_cast<double>(p) * speeds[c];
        to[p * speeds.size() + c] = static_cast<T>(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
      }
    }
  });
  return made;
}

}  // namespace

Tensor sinusoids(std::int64_t count, std::int64_t width) {
  check(count >= 0 && width >= 0, "sinusoids: asked for [", count, ", ", width, "]");
  return rows_of_sinusoids<double>(count, width);
}

// As many rows as were ever asked for: how many there may be says a file, and it may say a million.
class Position::Sinusoids {
 public:
  explicit Sinusoids(std::int64_t width) : width_(width) {}
  std::int64_t width() const { return width_; }

  // [count or more, width]
  Tensor rows(std::int64_t count, DType type) { return type == DType::kF64 ? rows<double>(count) : rows<float>(count); }

 private:
  template <class T>
  Tensor rows(std::int64_t count) {
    Tensor& kept = std::is_same_v<T, double> ? wide_ : narrow_;
    {
      const std::lock_guard lock(mutex_);
      if (kept.defined() && kept[0] >= count) return kept;
    }
    // Not under the lock: whoever computes may wait for threads that wait for it. What two make is the same.
    const auto more = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max(count, kLeast))));
    const Tensor made = rows_of_sinusoids<T>(more, width_);
    const std::lock_guard lock(mutex_);
    if (!kept.defined() || kept[0] < more) kept = made;
    return made;
  }

  static constexpr std::int64_t kLeast = 64;
  const std::int64_t width_;
  std::mutex mutex_;
  Tensor wide_, narrow_;  // in f64 and f32
};

// An encoder and a decoder have the same.
std::shared_ptr<Position::Sinusoids> Position::shared_sinusoids(std::int64_t width) {
  static std::mutex mutex;
  static std::weak_ptr<Sinusoids> last;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Sinusoids> found = last.lock();
  if (found == nullptr || found->width() != width) last = found = std::make_shared<Sinusoids>(width);
  return found;
}

Position::Position(const Builder& builder, const PositionSettings& settings) : settings_(settings) {
  const auto& [kind, width, longest] = settings_;
  check(width >= 0 && longest >= 0, "Position: width ", width, " and longest ", longest, ", expected 0 or more");
  switch (kind) {
    case PositionKind::kNone:
      break;
    case PositionKind::kSinusoidal:
      sinusoids_ = shared_sinusoids(width);
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
  return x + tape.constant(sinusoids_->rows(first + time, x.dtype()).slice(0, first, first + time));
}

Var Position::operator()(Var x, std::span<const std::int32_t> places) const {
  if (settings_.kind == PositionKind::kNone) return x;
  const auto count = static_cast<std::int64_t>(places.size());
  check(x.shape() == Shape{count, settings_.width}, "Position: x is ", x.shape(), ", expected [", count, ", ",
        settings_.width, "]");
  Tape& tape = x.tape();
  const Tensor ids = tape.make({count}, DType::kI32);
  std::int64_t rows = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t place = places[static_cast<std::size_t>(i)];
    check(place >= 0 && place < settings_.longest, "Position: position ", place, " is asked for, there are ",
          settings_.longest);
    ids.data<std::int32_t>()[i] = place;
    rows = std::max<std::int64_t>(rows, place + 1);
  }
  const Var table =
      settings_.kind == PositionKind::kLearned ? tape.use(*table_) : tape.constant(sinusoids_->rows(rows, x.dtype()));
  return x + embedding(table, ids);
}

}  // namespace regard
