// The error of the elementary functions over all 2³² floats, on every target; that AVX2 and AVX-512 agree bit for bit
// (so one line serves both). Prints a line a function and target; the lines are kept in docs/accuracy.md.
//
//     ulp_exhaustive [NAME …]          no name: all; about a minute each with two threads
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/pool.h"
#include "kernels/math_bounds.h"
#include "kernels/target.h"

namespace regard {
namespace {

constexpr std::size_t kSpan = std::size_t{1} << 22;  // floats looked at in one go
constexpr std::size_t kPiece = std::size_t{1} << 16;

struct Worst {
  double ulps = 0;
  float ulps_at = 0;
  double absolute = 0;
  float absolute_at = 0;
  std::uint64_t refused = 0;
  float refused_at = 0;

  void see(const MathError& error, float x) {
    if (error.ulps > ulps && error.absolute > 2e-36) {
      ulps = error.ulps;
      ulps_at = x;
    }
    if (error.absolute > absolute) {
      absolute = error.absolute;
      absolute_at = x;
    }
    if (!error.allowed && refused++ == 0) refused_at = x;
  }
  void see(const Worst& other) {
    if (other.ulps > ulps) {
      ulps = other.ulps;
      ulps_at = other.ulps_at;
    }
    if (other.absolute > absolute) {
      absolute = other.absolute;
      absolute_at = other.absolute_at;
    }
    if (refused == 0) refused_at = other.refused_at;
    refused += other.refused;
  }
};

bool is_fused(const std::string& name) { return name != "sse4"; }

bool run(const MathFunction& f) {
  std::vector<float> x(kSpan);
  std::vector<double> exact(kSpan);
  std::map<std::string, std::vector<float>> y;
  std::map<std::string, Worst> worst;
  std::string best;  // the first target with fused multiply-add; the others have to agree with it
  bool equal = true;
  for (std::uint64_t begin = 0; begin < std::uint64_t{1} << 32; begin += kSpan) {
    parallel(kSpan / kPiece, [&](std::size_t piece) {
      for (std::size_t i = piece * kPiece; i < (piece + 1) * kPiece; ++i) {
        const auto bits = static_cast<std::uint32_t>(begin + i);
        std::memcpy(&x[i], &bits, sizeof(bits));
        exact[i] = exact_value(f, x[i]);
      }
    });
    for (const std::string& name : targets()) {
      const TargetScope scope(name);
      y[name].resize(kSpan);
      compute(f, x.data(), y[name].data(), kSpan);
      if (is_fused(name) && best.empty()) best = name;
      if (is_fused(name) && name != best) {
        equal = equal && std::memcmp(y[name].data(), y[best].data(), kSpan * sizeof(float)) == 0;
        continue;
      }
      std::vector<Worst> parts(kSpan / kPiece);
      parallel(parts.size(), [&](std::size_t piece) {
        const std::size_t step = is_fused(name) ? 1 : 16;  // SSE4 is not promised: a sample will do
        for (std::size_t i = piece * kPiece; i < (piece + 1) * kPiece; i += step)
          parts[piece].see(math_error(f, x[i], y[name][i], exact[i], is_fused(name)), x[i]);
      });
      for (const Worst& part : parts) worst[name].see(part);
    }
  }
  bool good = equal;
  for (const auto& [name, w] : worst) {
    std::printf("%s %-13s %-7s ", w.refused == 0 ? "PASS" : "FAIL", f.name.c_str(), name.c_str());
    if (f.slope) {
      std::printf("worst %.2e at %.9g", w.absolute, static_cast<double>(w.absolute_at));
    } else {
      std::printf("worst %.3f ulp at %.9g", w.ulps, static_cast<double>(w.ulps_at));
    }
    if (w.refused > 0)
      std::printf(", %llu beyond the bound, first at %.9g", static_cast<unsigned long long>(w.refused),
                  static_cast<double>(w.refused_at));
    std::printf("\n");
    good = good && w.refused == 0;
  }
  if (!equal) std::printf("FAIL %-13s targets with fused multiply-add differ\n", f.name.c_str());
  std::fflush(stdout);
  return good;
}

}  // namespace
}  // namespace regard

int main(int argc, char** argv) {
  bool good = true;
  int known = 0;
  for (const regard::MathFunction& f : regard::math_functions()) {
    bool wanted = argc == 1;
    for (int i = 1; i < argc; ++i) wanted = wanted || f.name == argv[i];
    if (!wanted) continue;
    ++known;
    good = regard::run(f) && good;
  }
  if (known == 0) std::printf("FAIL no such function\n");
  return good && known > 0 ? 0 : 1;
}
