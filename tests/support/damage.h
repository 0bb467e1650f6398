// Damages a file in every way that chance has, and looks at what its reader makes of it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>

#include "io/sealed.h"
#include "regard/error.h"
#include "regard/random.h"
#include "support/cases.h"

namespace regard {

using LoadBytes = std::function<void(const std::string& bytes)>;

// Draws from one seed, one number after another.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : key_(seed) {}
  std::size_t below(std::size_t count) {
    return static_cast<std::size_t>(random_below(key_, drawn_++, static_cast<std::uint32_t>(count)));
  }

 private:
  RandomKey key_;
  std::uint64_t drawn_ = 0;
};

inline void flip(std::string& bytes, std::size_t bit) {
  bytes[bit / 8] = static_cast<char>(static_cast<unsigned char>(bytes[bit / 8]) ^ (1u << (bit % 8)));
}

// A piece of one file in the place of a piece of another.
inline std::string spliced(const std::string& bytes, const std::string& other, Chance& chance) {
  const std::size_t begin = chance.below(bytes.size() + 1), gone = chance.below(bytes.size() - begin + 1);
  const std::size_t from = chance.below(other.size() + 1), come = chance.below(other.size() - from + 1);
  std::string out = bytes;
  const bool same_length = chance.below(2) == 0;
  return out.replace(begin, gone, other.substr(from, same_length ? std::min(gone, come) : come));
}

inline bool refused(const std::string& bytes, const LoadBytes& load) {
  try {
    load(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kFile) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return true;
  }
  return false;
}

// Nothing damaged is ever loaded. `other` is another good file, to splice from.
inline void expect_damage_is_refused(const std::string& good, const std::string& other, const LoadBytes& load) {
  ASSERT_NO_THROW(load(good));
  ASSERT_NO_THROW(load(other));
  Chance chance(21);
  for (int i = 0; i < cases(10'000); ++i) {
    const std::size_t bit = chance.below(8 * good.size());
    std::string bytes = good;
    flip(bytes, bit);
    ASSERT_TRUE(refused(bytes, load)) << "bit " << bit;
  }
  for (int i = 0; i < cases(2'000); ++i) {
    const std::size_t length = chance.below(good.size());
    ASSERT_TRUE(refused(good.substr(0, length), load)) << length << " bytes";
  }
  for (int i = 0; i < cases(2'000); ++i) {
    const std::string bytes = spliced(good, other, chance);
    if (bytes == good || bytes == other) continue;
    ASSERT_TRUE(refused(bytes, load)) << "splice " << i;
  }
}

inline std::string sealed_anew(std::string bytes) {
  const std::string digest = digest_of(bytes);
  if (!digest.empty()) set_digest(bytes, digest);
  return bytes;
}

// With a digest that fits, as by ill will: the file is loaded or cleanly refused.
inline void expect_no_harm_from_forgeries(const std::string& good, const std::string& other, const LoadBytes& load) {
  std::uint64_t header = 0;
  std::memcpy(&header, good.data(), 8);
  Chance chance(22);
  int all = 0, loaded = 0;
  for (int i = 0; i < cases(10'000); ++i, ++all) {
    std::string bytes = good;
    for (std::size_t flips = 1 + chance.below(3); flips > 0; --flips) flip(bytes, chance.below(8 * (8 + header)));
    loaded += refused(sealed_anew(bytes), load) ? 0 : 1;
  }
  for (int i = 0; i < cases(2'000); ++i, ++all) {
    loaded += refused(sealed_anew(spliced(good, other, chance)), load) ? 0 : 1;
  }
  EXPECT_LT(loaded, all / 2);
}

}  // namespace regard
