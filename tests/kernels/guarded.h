// Memory for kernel tests: floats between two guard zones that must come out as they went in, and numbers to fill them.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/pool.h"
#include "kernels/target.h"
#include "regard/random.h"

namespace regard {

class Guarded {
 public:
  explicit Guarded(std::size_t size, float value = 0) : size_(size), all_(size + 2 * kZone, kGuard) {
    for (float& x : *this) x = value;
  }
  explicit Guarded(const std::vector<float>& values) : Guarded(values.size()) {
    std::copy(values.begin(), values.end(), begin());
  }
  ~Guarded() { EXPECT_TRUE(intact()) << "written beyond a buffer of " << size_; }
  Guarded(const Guarded&) = default;

  float* data() { return all_.data() + kZone; }
  const float* data() const { return all_.data() + kZone; }
  std::size_t size() const { return size_; }
  float* begin() { return data(); }
  float* end() { return data() + size_; }
  float& operator[](std::size_t i) { return data()[i]; }
  std::vector<float> values() const { return {data(), data() + size_}; }

  bool intact() const {
    for (std::size_t i = 0; i < kZone; ++i) {
      if (all_[i] != kGuard || all_[kZone + size_ + i] != kGuard) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kZone = 67;  // odd, so that rows begin at odd addresses
  static constexpr float kGuard = 12345.678f;
  std::size_t size_;
  std::vector<float> all_;
};

inline std::vector<float> random_floats(std::size_t n, std::uint64_t seed, float low = -3, float high = 3) {
  std::vector<float> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = low + (high - low) * uniform(RandomKey(seed), i);
  return out;
}

inline std::vector<double> doubles(const std::vector<float>& x) { return {x.begin(), x.end()}; }

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// Runs a computation on every target with 1, 2 and 3 threads and hands each result to `check`. Results must not depend
// on threads, and have the same bits on all targets with fused multiply-add.
inline void on_every_target(const std::function<std::vector<float>()>& compute,
                            const std::function<void(const std::vector<float>&)>& check) {
  ASSERT_FALSE(targets().empty());
  std::vector<float> fused;
  for (const std::string& name : targets()) {
    SCOPED_TRACE(name);
    const TargetScope scope(name);
    std::vector<float> first;
    for (int count : {1, 2, 3}) {
      const ThreadLimit limit(count);
      const std::vector<float> result = compute();
      if (count == 1) {
        first = result;
        check(first);
      } else {
        EXPECT_TRUE(same_bits(result, first)) << "threads change the result";
      }
    }
    if (name == "sse4") continue;
    if (fused.empty()) fused = first;
    EXPECT_TRUE(same_bits(first, fused)) << "targets differ";
  }
}

// |computed − exact| ≤ 2e-6·(1 + terms): `terms` is the sum of the magnitudes of what was added up.
inline void expect_close(const std::vector<float>& computed, const std::vector<double>& exact,
                         const std::vector<double>& terms) {
  ASSERT_EQ(computed.size(), exact.size());
  for (std::size_t i = 0; i < computed.size(); ++i) {
    const double allowed = 2e-6 * (1 + (terms.empty() ? std::abs(exact[i]) : terms[i]));
    ASSERT_NEAR(static_cast<double>(computed[i]), exact[i], allowed) << "element " << i;
  }
}

}  // namespace regard
