// Elementary functions of float vectors: Exp, Log, Tanh, Sigmoid, Erf, Gelu, GeluTanh, Silu, and the slopes that
// backward passes need. Each is a fixed sequence of IEEE operations, so a lane has the same bits on AVX2 and AVX-512,
// built by g++ or clang. No division and no hardware estimate of a reciprocal: 16 quotients take 16 cycles, the
// polynomials here about 10.
//
//     const hn::ScalableTag<float> d;
//     hn::StoreU(Tanh(d, hn::LoadU(d, x)), d, y);
//
// NaN gives NaN. Subnormal numbers count as zero, read or written (base/float_mode.h has to be in force): a result
// below the smallest normal number is exactly 0. Largest error over all floats with fused multiply-add, in units in the
// last place of the result (docs/accuracy.md has the measured figures, and those of SSE4):
//
//     Exp       2 ulp              exp(+∞) = ∞, exp(−∞) = 0, above 88.72283 ∞, below −87.33654 0
//     Log       2 ulp              log(±0) = −∞, log of less is NaN, log(+∞) = ∞
//     Tanh      2 ulp              odd, at most 1, tanh(±∞) = ±1
//     Sigmoid   3 ulp              also where it is small; 0 below 1.4e-38
//     Erf       3 ulp              odd, at most 1
//     Gelu      4 ulp              x·Φ(x), also far below zero; 0 where |gelu| < 2e-37
//     GeluTanh  (4 + 2.5·|2u|) ulp x·σ(2u), u = √(2/π)·(x + 0.044715·x³); 0 where |gelu| < 2e-37
//     Silu      4 ulp              x·σ(x); 0 where |silu| < 2e-36
//     GeluSlope, GeluTanhSlope, SiluSlope   absolute error 3e-7 (each has a zero)
//
// Min and Max are written with the constant first: x86 returns the second operand when one is NaN, NEON the NaN.
#ifndef REGARD_KERNELS_MATH_TABLES
#define REGARD_KERNELS_MATH_TABLES

#include <cstddef>

namespace regard::detail {

// A function of t ≥ 0 as 16 polynomials of degree 5. Piece i is found by the leading bits of t + shift, which makes
// pieces narrow near zero and wide far out:  f(t) ≈ c0 + h·(c1 + h·(… + h·c5)),  h = t − middle.
// The middle of a piece is a float where f itself is almost a float, so that c0 adds no error; h is exact. The last
// piece of tanh and erf has the limit for a middle and 1 there. Coefficients are a minimax fit of the relative error,
// each rounded to float before the rest was fitted again. At the limit of the third, 13.26, exp(−t²/2) is already 0.
struct Pieces {
  float shift;
  float limit;  // beyond it the function is that of the limit
  alignas(64) float middle[16];
  alignas(64) float coefficient[6][16];
};

// tanh on [0, 9.02]: error of the polynomials 0.8 · 2⁻²⁴.
inline constexpr Pieces kTanhPieces = {
    .shift = 0.625f,
    .limit = 9.02f,
    .middle = {1.62498569f, 2.12498927f, 2.62498093f, 3.12517428f, 3.87496877f, 4.87498236f, 5.87447262f, 6.87309313f,
               9.02000046f, 0.0f, 0.187501088f, 0.312504888f, 0.499999404f, 0.749974906f, 0.999998629f, 1.25000322f},
    .coefficient = {
        {0.925344169f, 0.971872151f, 0.989559352f, 0.996147871f, 0.999138832f, 0.999883413f, 0.999984205f, 0.999997854f,
         1.0f, 0.0f, 0.18533425f, 0.302714169f, 0.462116688f, 0.635133982f, 0.76159358f, 0.848284543f},
        {0.143738046f, 0.0554645136f, 0.0207722913f, 0.007689422f, 0.0017216421f, 0.000233166516f, 3.15910111e-05f,
         4.28683461e-06f, 9.39732445e-07f, 1.0f, 0.965651214f, 0.908364117f, 0.78644824f, 0.596604824f, 0.419975221f,
         0.28041333f},
        {-0.133014351f, -0.0539035052f, -0.0205543321f, -0.00765928579f, -0.00171805627f, -0.000232846243f,
         -3.15498255e-05f, -4.21076948e-06f, 4.23099073e-06f, 0.0f, -0.178967714f, -0.274973929f, -0.363425463f,
         -0.378923774f, -0.319852531f, -0.237871915f},
        {0.0751782656f, 0.0339011624f, 0.0134163247f, 0.00506680505f, 0.00114334689f, 0.000155183268f, 2.10323378e-05f,
         2.8590282e-06f, 7.36363336e-06f, -0.333342671f, -0.288710654f, -0.219529599f, -0.0942267552f, 0.0417978726f,
         0.103602394f, 0.108312592f},
        {-0.0248548668f, -0.0150263663f, -0.00648044422f, -0.00252073794f, -0.000596816768f, -8.13253719e-05f,
         -1.10304736e-05f, -1.78261837e-06f, 5.09858728e-06f, 0.000310650154f, 0.112791829f, 0.157634407f, 0.163575396f,
         0.0997276157f, 0.0281337034f, -0.0122564007f},
        {0.00110720098f, 0.00445469702f, 0.00235841097f, 0.000976125186f, 0.000236724212f, 3.24777284e-05f,
         4.40403392e-06f, 5.90496427e-07f, 1.26799421e-06f, 0.130616724f, 0.0954153314f, 0.0410031192f, -0.0254097376f,
         -0.0636206716f, -0.0461231172f, -0.0193762761f}}};
// erf on [0, 3.94]: 0.9 · 2⁻²⁴.
inline constexpr Pieces kErfPieces = {
    .shift = 0.3125f,
    .limit = 3.94f,
    .middle = {1.93747449f, 2.43746018f, 2.93736124f, 3.43654656f, 3.94000006f, 0.0f, 0.0937490165f, 0.156244412f,
               0.249985069f, 0.375003576f, 0.499996006f, 0.624916792f, 0.812502265f, 1.06239402f, 1.31252062f,
               1.56251121f},
    .coefficient = {
        {0.993856132f, 0.999433339f, 0.999967337f, 0.999998808f, 1.0f, 0.0f, 0.105475344f, 0.174878731f, 0.276310563f,
         0.404120415f, 0.520496368f, 0.62317735f, 0.749465346f, 0.867019594f, 0.936572731f, 0.972875714f},
        {0.0264359415f, 0.00296634156f, 0.000202002397f, 8.38009782e-06f, 5.12905217e-06f, 1.12837923f, 1.11850548f,
         1.10116637f, 1.060022f, 0.980350196f, 0.878786087f, 0.763578951f, 0.583111048f, 0.364985079f, 0.201507598f,
         0.0982088372f},
        {-0.0512230136f, -0.00722532859f, -0.000591727905f, -2.77026193e-05f, 0.000154845489f, 0.0f, -0.104859419f,
         -0.17205134f, -0.264989048f, -0.367634416f, -0.439389169f, -0.477172971f, -0.473776907f, -0.387759089f,
         -0.2644853f, -0.153454199f},
        {0.0573628694f, 0.0107588721f, 0.00109262916f, 7.07829022e-05f, 0.0017263866f, -0.376826406f, -0.366480827f,
         -0.349278599f, -0.309124708f, -0.234892771f, -0.146464109f, -0.0557374395f, 0.0622476861f, 0.152969703f,
         0.16425994f, 0.127113059f},
        {-0.0382868722f, -0.010962381f, -0.00149102928f, -0.000119591685f, 0.00779718021f, 0.0270458385f, 0.0528708994f,
         0.0848956406f, 0.12664099f, 0.166287139f, 0.18278864f, 0.17622219f, 0.132212594f, 0.0482265577f,
         -0.0191441849f, -0.0477854796f},
        {0.0121140499f, 0.00724961003f, 0.00138262636f, -1.29056971e-05f, 0.0123620974f, -0.148476094f, 0.276973128f,
         0.219663545f, 0.068433024f, 0.0495471247f, 0.00661741849f, -0.0257648416f, -0.0607296042f, -0.0659112483f,
         -0.0391374826f, -0.00823311508f}}};
// The tail of the normal distribution without its exponential, exp(t²/2)·Φ(−t) on [0, 13.26]: 1.8 · 2⁻²⁴.
inline constexpr Pieces kTailPieces = {
    .shift = 1.0f,
    .limit = 13.26f,
    .middle = {1.24991882f, 1.74995828f, 2.25014782f, 2.75007343f, 3.4999094f, 4.50017786f, 5.49959564f, 6.50011301f,
               8.00013065f, 10.0000668f, 11.9999514f, 13.1302052f, 0.125002161f, 0.375002086f, 0.625000238f,
               0.874988317f},
    .coefficient = {
        {0.230769292f, 0.185234785f, 0.15364407f, 0.130721837f, 0.106347576f, 0.0848003104f, 0.0703475699f,
         0.0600146763f, 0.0491217673f, 0.0395064354f, 0.0330191031f, 0.0302102976f, 0.453792483f, 0.379603893f,
         0.323356122f, 0.279772371f},
        {-0.110499397f, -0.0747891366f, -0.0532204099f, -0.039447628f, -0.0267353989f, -0.0173257999f, -0.0120590916f,
         -0.00884010177f, -0.00596172409f, -0.00387528911f, -0.00271464908f, -0.00227487576f, -0.342217237f,
         -0.256590039f, -0.196844622f, -0.154144719f},
        {0.0463259742f, 0.0271780491f, 0.0169449728f, 0.0111189075f, 0.00638766866f, 0.00341545627f, 0.00201368704f,
         0.00127649296f, 0.000713540765f, 0.000376629381f, 0.000221719209f, 0.00017035607f, 0.205506474f, 0.141690508f,
         0.10016381f, 0.0724485964f},
        {-0.0175313782f, -0.0090756882f, -0.00503053004f, -0.00295657897f, -0.00145921204f, -0.000651724637f,
         -0.000328142138f, -0.000180895455f, -8.42784939e-05f, -3.62771243e-05f, -1.79928084e-05f, -1.26814257e-05f,
         -0.105510108f, -0.0678147525f, -0.0447489209f, -0.0302525759f},
        {0.00615658471f, 0.00284457067f, 0.00141489191f, 0.000750786974f, 0.000325071422f, 0.000122029225f,
         5.2699128e-05f, 2.53474664e-05f, 1.00098096e-05f, 3.50718869e-06f, 1.46411344e-06f, 9.44245585e-07f,
         0.0482472107f, 0.0291636009f, 0.0181028303f, 0.0115265502f},
        {-0.00199326454f, -0.000835767132f, -0.000373211107f, -0.00018036316f, -6.86518397e-05f, -2.18746009e-05f,
         -8.20994319e-06f, -3.43093734e-06f, -1.1519262e-06f, -3.32063848e-07f, -1.17556134e-07f, -4.16084816e-07f,
         -0.0199020375f, -0.0116319982f, -0.00661236234f, -0.00395215582f}}};
}  // namespace regard::detail

#endif  // REGARD_KERNELS_MATH_TABLES

#if defined(REGARD_KERNELS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_KERNELS_MATH_INL_H_
#undef REGARD_KERNELS_MATH_INL_H_
#else
#define REGARD_KERNELS_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// x, but not below or above a limit; NaN stays NaN. On x86 that is what maximum and minimum do with their second
// operand; on others they prefer the number.
template <class V>
HWY_INLINE V AtLeast(V limit, V x) {
  return HWY_ARCH_X86 ? hn::Max(limit, x) : hn::IfThenElse(hn::Lt(x, limit), limit, x);
}
template <class V>
HWY_INLINE V AtMost(V limit, V x) {
  return HWY_ARCH_X86 ? hn::Min(limit, x) : hn::IfThenElse(hn::Gt(x, limit), limit, x);
}

namespace detail {

// exp(kSign·x) from kSign·x = n·ln2 + r in three steps. The first gives a float whose last bits are n + 127, the second
// kSign·r, the third 2ⁿ·exp(r), with 2ⁿ built in the exponent bits and a polynomial of degree 6. For n = −127 the
// power is 0, for n = −126 the product may be subnormal and becomes 0: so −88 is a lower limit for kSign·x that serves
// all that is below it. n may be at most 127.
inline constexpr float kRounder = 0x1.8p23f + 127;

template <int kSign, class D, class V>
HWY_INLINE V ExpRounded(D d, V x) {
  return hn::MulAdd(x, hn::Set(d, kSign * 1.44269502f), hn::Set(d, kRounder));
}

template <int kSign, class D, class V>
HWY_INLINE V ExpRemainder(D d, V rounded, V x) {
  const V n = hn::Sub(rounded, hn::Set(d, kRounder));
  const V r = hn::MulAdd(n, hn::Set(d, kSign * -0.693145752f), x);  // 15 bits of ln2: exact without fusing, too
  return hn::MulAdd(n, hn::Set(d, kSign * -1.42860677e-06f), r);
}

template <int kSign, class D, class V>
HWY_INLINE V ExpRaise(D d, V rounded, V r) {
  const hn::RebindToUnsigned<D> du;
  V p = hn::Set(d, 0.00159322505f);
  p = hn::MulAdd(p, r, hn::Set(d, kSign * 0.00834805612f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.0416267216f));
  p = hn::MulAdd(p, r, hn::Set(d, kSign * 0.166666389f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.500001788f));
  p = hn::MulAdd(p, r, hn::Set(d, kSign * 1.0f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  return hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, rounded))));
}

template <int kSign, class D, class V>
HWY_INLINE V ExpInRange(D d, V x) {  // kSign·x in [−88, 88.37]
  const V rounded = ExpRounded<kSign>(d, x);
  return ExpRaise<kSign>(d, rounded, ExpRemainder<kSign>(d, rounded, x));
}

// 1 / x for 2⁻¹⁰⁰ < x ≤ 1.6e38 within 0.54 ulp (0 where that is below 1.4e-38): subtracting the bits gives 6 %, a step
// of Newton's method with its constant tuned to the guess 0.13 %, a step of third order the rest.
template <class D, class V>
HWY_INLINE V Reciprocal(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  const V one = hn::Set(d, 1.0f);
  const V guess = hn::BitCast(d, hn::Sub(hn::Set(du, 0x7EF33400u), hn::BitCast(du, x)));
  const V better = hn::Mul(guess, hn::NegMulAdd(x, guess, hn::Set(d, 2.00128007f)));
  const V gap = hn::NegMulAdd(x, better, one);
  return hn::MulAdd(better, hn::MulAdd(gap, gap, gap), better);
}

// table[index] in each lane; only the last four bits of the index count.
template <class D, class VI>
HWY_INLINE hn::Vec<D> Lookup16(D d, const float* HWY_RESTRICT table, VI index) {
  const hn::RebindToSigned<D> di;
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  if constexpr (kLanes == 16) {
#if HWY_TARGET == HWY_AVX3  // which looks at no other bits by itself
    return hn::Vec<D>{_mm512_permutexvar_ps(index.raw, hn::Load(d, table).raw)};
#endif
    return hn::TableLookupLanes(hn::Load(d, table), hn::IndicesFromVec(d, hn::And(index, hn::Set(di, 15))));
  } else if constexpr (kLanes == 8) {
    const auto within = hn::IndicesFromVec(d, hn::And(index, hn::Set(di, 7)));
    const auto second = hn::RebindMask(d, hn::TestBit(index, hn::Set(di, 8)));
    return hn::IfThenElse(second, hn::TableLookupLanes(hn::Load(d, table + 8), within),
                          hn::TableLookupLanes(hn::Load(d, table), within));
  } else {
    HWY_ALIGN std::int32_t places[kLanes];
    HWY_ALIGN float values[kLanes];
    hn::Store(index, di, places);
    for (std::size_t lane = 0; lane < kLanes; ++lane) values[lane] = table[places[lane] & 15];
    return hn::Load(d, values);
  }
}

template <class D, class V>
HWY_INLINE V Piecewise(D d, const regard::detail::Pieces& pieces, V t) {  // 0 ≤ t ≤ pieces.limit
  const hn::RebindToSigned<D> di;
  const auto index = hn::ShiftRight<21>(hn::BitCast(di, hn::Add(t, hn::Set(d, pieces.shift))));
  const V h = hn::Sub(t, Lookup16(d, pieces.middle, index));
  V sum = Lookup16(d, pieces.coefficient[5], index);
  sum = hn::MulAdd(sum, h, Lookup16(d, pieces.coefficient[4], index));
  sum = hn::MulAdd(sum, h, Lookup16(d, pieces.coefficient[3], index));
  sum = hn::MulAdd(sum, h, Lookup16(d, pieces.coefficient[2], index));
  sum = hn::MulAdd(sum, h, Lookup16(d, pieces.coefficient[1], index));
  return hn::MulAdd(sum, h, Lookup16(d, pieces.coefficient[0], index));
}

template <class D, class V>
HWY_INLINE V OddPiecewise(D d, const regard::detail::Pieces& pieces, V x) {
  return hn::CopySignToAbs(Piecewise(d, pieces, AtMost(hn::Set(d, pieces.limit), hn::Abs(x))), x);
}

template <class V>
struct SigmoidParts {
  V value;
  V complement;  // 1 − value, without cancellation
};

template <class D, class V>
HWY_INLINE V SigmoidClamp(D d, V x) {  // beyond, the sigmoid is exactly 0 or 1
  return AtMost(hn::Set(d, 88.0f), AtLeast(hn::Set(d, -87.9f), x));
}

template <class D, class V>
HWY_INLINE SigmoidParts<V> SigmoidAndComplement(D d, V clamped) {
  const V e = ExpInRange<-1>(d, clamped);
  const V value = Reciprocal(d, hn::Add(hn::Set(d, 1.0f), e));
  return {value, hn::Mul(e, value)};
}

// For Φ(−t) = exp(−t²/2)·tail(t). The square is taken in two parts: half an ulp of 87 is 4e-6.
template <class V>
struct NormalParts {
  V exponential;  // exp(−t²/2)
  V tail;
};

template <class D, class V>
HWY_INLINE NormalParts<V> NormalTail(D d, V t) {  // 0 ≤ t ≤ kTailPieces.limit
  const V half = hn::Mul(t, hn::Set(d, 0.5f));
  const V high = hn::Mul(half, t);
  const V low = hn::MulSub(half, t, high);
  const V rounded = ExpRounded<-1>(d, high);
  const V r = hn::Add(ExpRemainder<-1>(d, rounded, high), low);
  return {ExpRaise<-1>(d, rounded, r), Piecewise(d, regard::detail::kTailPieces, t)};
}

}  // namespace detail

template <class D, class V>
HWY_INLINE V Exp(D d, V x) {
  const V above = AtLeast(hn::Set(d, -88.0f), x);
  // Where n would be 128 it stays 127, r goes up to ln2, and beyond that the product overflows to ∞ by itself.
  const V rounded = AtMost(hn::Set(d, detail::kRounder + 127), detail::ExpRounded<1>(d, above));
  return detail::ExpRaise<1>(d, rounded, detail::ExpRemainder<1>(d, rounded, above));
}

// x = 2ᵉ·m with √½ ≤ m < √2, f = m − 1:  log x = e·ln2 + f − f²/2 + f³·q(f).
template <class D, class V>
HWY_INLINE V Log(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(di, x);
  const auto exponent = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3F3504F3)));
  const V e = hn::ConvertTo(d, exponent);
  const V f = hn::Sub(hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(exponent))), hn::Set(d, 1.0f));
  V q = hn::Set(d, 0.0826705545f);
  q = hn::MulAdd(q, f, hn::Set(d, -0.141465753f));
  q = hn::MulAdd(q, f, hn::Set(d, 0.14997825f));
  q = hn::MulAdd(q, f, hn::Set(d, -0.165943936f));
  q = hn::MulAdd(q, f, hn::Set(d, 0.199578151f));
  q = hn::MulAdd(q, f, hn::Set(d, -0.250008166f));
  q = hn::MulAdd(q, f, hn::Set(d, 0.333340257f));
  q = hn::MulAdd(q, f, hn::Set(d, -0.5f));
  const V low = hn::MulAdd(hn::Mul(f, f), q, hn::Mul(e, hn::Set(d, 1.42860677e-06f)));
  const V normal = hn::MulAdd(e, hn::Set(d, 0.693145752f), hn::Add(f, low));
  const V smallest = hn::Set(d, 0x1p-126f), infinity = hn::Inf(d);
  const V below = hn::IfThenElse(hn::Lt(hn::Abs(x), smallest), hn::Neg(infinity), hn::NaN(d));
  return hn::IfThenElse(hn::Ge(x, smallest), hn::IfThenElse(hn::Lt(x, infinity), normal, x), below);
}

template <class D, class V>
HWY_INLINE V Tanh(D d, V x) {
  return detail::OddPiecewise(d, regard::detail::kTanhPieces, x);
}

template <class D, class V>
HWY_INLINE V Erf(D d, V x) {
  return detail::OddPiecewise(d, regard::detail::kErfPieces, x);
}

template <class D, class V>
HWY_INLINE V Sigmoid(D d, V x) {
  const V e = detail::ExpInRange<-1>(d, detail::SigmoidClamp(d, x));
  return detail::Reciprocal(d, hn::Add(hn::Set(d, 1.0f), e));
}

template <class D, class V>
HWY_INLINE V Silu(D d, V x) {
  return hn::Mul(AtLeast(hn::Set(d, -88.0f), x), Sigmoid(d, x));  // −∞ gives −0, not −∞·0
}

// σ·(1 + x·(1 − σ))
template <class D, class V>
HWY_INLINE V SiluSlope(D d, V x) {
  const V clamped = detail::SigmoidClamp(d, x);
  const auto sigmoid = detail::SigmoidAndComplement(d, clamped);
  return hn::Mul(sigmoid.value, hn::MulAdd(clamped, sigmoid.complement, hn::Set(d, 1.0f)));
}

// Hendrycks and Gimpel 2016. x·Φ(x) = max(x, 0) − |x|·Φ(−|x|)
template <class D, class V>
HWY_INLINE V Gelu(D d, V x) {
  const V t = AtMost(hn::Set(d, regard::detail::kTailPieces.limit), hn::Abs(x));
  const auto normal = detail::NormalTail(d, t);
  return hn::NegMulAdd(t, hn::Mul(normal.exponential, normal.tail), AtLeast(hn::Zero(d), x));
}

// Φ(x) + x·φ(x), which is 1 − itself at −x
template <class D, class V>
HWY_INLINE V GeluSlope(D d, V x) {
  const V t = AtMost(hn::Set(d, regard::detail::kTailPieces.limit), hn::Abs(x));
  const auto normal = detail::NormalTail(d, t);
  const V above = hn::Mul(normal.exponential, hn::MulSub(t, hn::Set(d, 0.398942280f), normal.tail));  // slope(t) − 1
  const V step = hn::IfNegativeThenElse(x, hn::Zero(d), hn::Set(d, 1.0f));  // by the sign, as the next line
  return hn::Add(step, hn::Xor(above, hn::And(x, hn::SignBit(d))));
}

namespace detail {

inline constexpr float kTwiceRoot = 1.59576912f;         // 2·√(2/π)
inline constexpr float kTwiceRootCubic = 0.0713548162f;  // 2·√(2/π)·0.044715

}  // namespace detail

// ½x·(1 + tanh u) = x·σ(2u), u = √(2/π)·(x + 0.044715·x³)
template <class D, class V>
HWY_INLINE V GeluTanh(D d, V x) {
  const V twice =
      hn::Mul(x, hn::MulAdd(hn::Mul(x, x), hn::Set(d, detail::kTwiceRootCubic), hn::Set(d, detail::kTwiceRoot)));
  return hn::Mul(AtLeast(hn::Set(d, -88.0f), x), Sigmoid(d, twice));
}

// σ + x·σ·(1 − σ)·2u′
template <class D, class V>
HWY_INLINE V GeluTanhSlope(D d, V x) {
  const V near = AtMost(hn::Set(d, 12.0f), AtLeast(hn::Set(d, -12.0f), x));  // beyond, exactly 0 or 1
  const V square = hn::Mul(near, near);
  const V root = hn::Set(d, detail::kTwiceRoot);
  const V twice = hn::Mul(near, hn::MulAdd(square, hn::Set(d, detail::kTwiceRootCubic), root));
  const V slope = hn::MulAdd(square, hn::Set(d, 3 * detail::kTwiceRootCubic), root);
  const auto sigmoid = detail::SigmoidAndComplement(d, detail::SigmoidClamp(d, twice));
  return hn::Mul(sigmoid.value, hn::MulAdd(hn::Mul(near, slope), sigmoid.complement, hn::Set(d, 1.0f)));
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
