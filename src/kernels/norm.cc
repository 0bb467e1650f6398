#include "kernels/norm.h"

#include <algorithm>

#include "kernels/chunks.h"
#include "kernels/elementwise.h"
#include "kernels/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/map-inl.h"
#include "kernels/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace {

// y = (x − mean)·inverse·weight + bias
HWY_INLINE void Normalise(Path path, const float* x, float mean, float inverse, const float* weight, const float* bias,
                          float* y, std::size_t n) {
  const auto hat = [mean, inverse](auto d, auto v)
                       HWY_ATTR { return hn::Mul(hn::Sub(v, hn::Set(d, mean)), hn::Set(d, inverse)); };
  if (weight != nullptr && bias != nullptr) {
    const auto affine = [hat](auto d, auto v, auto w, auto b) HWY_ATTR { return hn::MulAdd(hat(d, v), w, b); };
    MapOn(path, affine, y, n, x, weight, bias);
  } else if (weight != nullptr) {
    MapOn(
        path, [hat](auto d, auto v, auto w) HWY_ATTR { return hn::Mul(hat(d, v), w); }, y, n, x, weight);
  } else if (bias != nullptr) {
    MapOn(
        path, [hat](auto d, auto v, auto b) HWY_ATTR { return hn::Add(hat(d, v), b); }, y, n, x, bias);
  } else {
    MapOn(path, hat, y, n, x);
  }
}

// Two passes: the variance from x − mean, not from x², which loses it when the mean is large. The mean of the next row
// is begun before this row is finished: the processor has something to do while it waits for the square root.
void LayerNormRows(Rows x, const float* weight, const float* bias, float epsilon, Tile y, float* mean, float* inverse,
                   Path path) {
  const auto width = static_cast<float>(x.width);
  float next_middle = Sum16(x.row(0), x.width) / width;
  for (std::size_t i = 0; i < x.count; ++i) {
    const float* from = x.row(i);
    const float middle = next_middle;
    const auto step = [middle](auto d, auto sum, auto v) HWY_ATTR {
      const auto gap = hn::Sub(v, hn::Set(d, middle));
      return hn::MulAdd(gap, gap, sum);
    };
    const float squares = SumTree16(Fold16(x.width, hn::Zero(Tag16()), step, from));
    const float scale = 1.0f / std::sqrt(squares / width + epsilon);
    if (i + 1 < x.count) next_middle = Sum16(x.row(i + 1), x.width) / width;
    Normalise(path == Path::kStreamed ? path : Path::kCached, from, middle, scale, weight, bias, y.row(i), x.width);
    if (mean != nullptr) mean[i] = middle;
    if (inverse != nullptr) inverse[i] = scale;
  }
}

void RmsNormRows(Rows x, const float* weight, float epsilon, Tile y, float* inverse, Path path) {
  const auto width = static_cast<float>(x.width);
  for (std::size_t i = 0; i < x.count; ++i) {
    const float scale = 1.0f / std::sqrt(SumSquares16(x.row(i), x.width) / width + epsilon);
    Normalise(path == Path::kStreamed ? path : Path::kCached, x.row(i), 0.0f, scale, weight, nullptr, y.row(i),
              x.width);
    if (inverse != nullptr) inverse[i] = scale;
  }
}

// A block of rows; dweight and dbias are the sums over the block. `mean` is null for rms_norm; so may be dx.data.
void NormBackwardRows(Rows x, const float* weight, const float* mean, const float* inverse, Rows dy, Tile dx,
                      bool add_dx, float* dweight, float* dbias) {
  const Tag16 d;
  const auto width = static_cast<float>(x.width);
  Map([](auto tag) HWY_ATTR { return hn::Zero(tag); }, dweight, x.width);
  Map([](auto tag) HWY_ATTR { return hn::Zero(tag); }, dbias, x.width);
  for (std::size_t i = 0; i < x.count; ++i) {
    const float* from = x.row(i);
    const float* gradient = dy.row(i);
    const Vector16 middle = hn::Set(d, mean != nullptr ? mean[i] : 0.0f), scale = hn::Set(d, inverse[i]);
    Lanes16 sums, dots;
    for (Vector16& part : sums.part) part = hn::Zero(d);
    for (Vector16& part : dots.part) part = hn::Zero(d);
    ForEachPart16(x.width, [&](std::size_t c, std::size_t part, std::size_t count) HWY_ATTR {
      const Vector16 hat = hn::Mul(hn::Sub(LoadPart16(from + c, count), middle), scale);
      const Vector16 g = hn::Mul(LoadPart16(gradient + c, count), LoadPart16(weight + c, count));
      sums.part[part] = ChangeFirst16(hn::Add(sums.part[part], g), sums.part[part], count);
      dots.part[part] = ChangeFirst16(hn::MulAdd(g, hat, dots.part[part]), dots.part[part], count);
    });
    const Vector16 sum = hn::Set(d, mean != nullptr ? SumTree16(sums) / width : 0.0f);
    const Vector16 dot = hn::Set(d, SumTree16(dots) / width);
    ForEachPart16(x.width, [&](std::size_t c, std::size_t, std::size_t count) HWY_ATTR {
      const Vector16 hat = hn::Mul(hn::Sub(LoadPart16(from + c, count), middle), scale);
      const Vector16 dout = LoadPart16(gradient + c, count);
      StorePart16(hn::MulAdd(dout, hat, LoadPart16(dweight + c, count)), dweight + c, count);
      StorePart16(hn::Add(dout, LoadPart16(dbias + c, count)), dbias + c, count);
      if (dx.data == nullptr) return;
      const Vector16 g = hn::Mul(dout, LoadPart16(weight + c, count));
      Vector16 value = hn::Mul(scale, hn::NegMulAdd(hat, dot, hn::Sub(g, sum)));
      if (add_dx) value = hn::Add(LoadPart16(dx.row(i) + c, count), value);
      StorePart16(value, dx.row(i) + c, count);
    });
  }
}

}  // namespace
}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {
namespace {

HWY_EXPORT(LayerNormRows);
HWY_EXPORT(RmsNormRows);
HWY_EXPORT(NormBackwardRows);

constexpr std::size_t kRowBlock = 16;  // rows whose dweight and dbias are added up at a time

void norm_backward(Rows x, const float* weight, const float* mean, const float* inverse, Rows dy,
                   const NormGradients<float>& to) {
  const std::size_t width = x.width, blocks = (x.count + kRowBlock - 1) / kRowBlock;
  static thread_local Scratch weight_sums, bias_sums, ones;
  float* dweight = weight_sums.reserve(blocks * width);
  float* dbias = bias_sums.reserve(blocks * width);
  if (weight == nullptr) {
    std::fill_n(ones.reserve(width), width, 1.0f);
    weight = ones.reserve(width);
  }
  for_each_item(blocks, x.count * width, [&](std::size_t block) {
    const std::size_t begin = block * kRowBlock, count = std::min(kRowBlock, x.count - begin);
    const Tile dx = to.dx.data == nullptr ? to.dx : some_rows(to.dx, begin, count);
    HWY_DYNAMIC_DISPATCH(NormBackwardRows)
    (some_rows(x, begin, count), weight, mean == nullptr ? mean : mean + begin, inverse + begin,
     some_rows(dy, begin, count), dx, to.add_dx, dweight + block * width, dbias + block * width);
  });
  const std::size_t shape[] = {blocks, width};
  if (to.dweight != nullptr) sum_dimensions(shape, 1, dweight, to.dweight, to.add_parameters);
  if (to.dbias != nullptr) sum_dimensions(shape, 1, dbias, to.dbias, to.add_parameters);
}

}  // namespace

void layer_norm(Rows x, const float* weight, const float* bias, float epsilon, Tile y, float* mean, float* inverse) {
  const Path path = path_for(x.count * x.width, x.data == y.data);
  in_row_chunks(x.count, x.width, [&](std::size_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(LayerNormRows)
    (some_rows(x, begin, count), weight, bias, epsilon, some_rows(y, begin, count),
     mean == nullptr ? mean : mean + begin, inverse == nullptr ? inverse : inverse + begin, path);
    finish_stores(path);
  });
}

void layer_norm_backward(Rows x, const float* weight, const float* mean, const float* inverse, Rows dy,
                         const NormGradients<float>& to) {
  norm_backward(x, weight, mean, inverse, dy, to);
}

void rms_norm(Rows x, const float* weight, float epsilon, Tile y, float* inverse) {
  const Path path = path_for(x.count * x.width, x.data == y.data);
  in_row_chunks(x.count, x.width, [&](std::size_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(RmsNormRows)
    (some_rows(x, begin, count), weight, epsilon, some_rows(y, begin, count),
     inverse == nullptr ? inverse : inverse + begin, path);
    finish_stores(path);
  });
}

void rms_norm_backward(Rows x, const float* weight, const float* inverse, Rows dy, const NormGradients<float>& to) {
  norm_backward(x, weight, nullptr, inverse, dy, to);
}

}  // namespace regard
#endif
