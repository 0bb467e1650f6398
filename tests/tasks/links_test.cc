// Links in text, of two directions made one, and scored.
#include "tasks/links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "regard/random.h"
#include "support/error_of.h"

namespace regard {
namespace {

Links links(std::string_view text) { return parse_links(text, "here"); }

TEST(Links, AreWrittenSourceFirstAndReadBack) {
  EXPECT_EQ(pharaoh({}), "");
  EXPECT_EQ(pharaoh({{0, 0}, {1, 12}, {3, 2}}), "0-0 1-12 3-2");
  EXPECT_EQ(links("  3-2 0-0\t1-12 0-0 "), (Links{{0, 0}, {1, 12}, {3, 2}}));
  EXPECT_EQ(parse_links("1-1 4-3", "here", 1), (Links{{0, 0}, {3, 2}}));
  EXPECT_EQ(turned(links("0-1 0-2 3-0")), links("1-0 2-0 0-3"));
  const GoldLinks gold = parse_gold("0-0 1p1 2-1 0p0", "here");
  EXPECT_EQ(gold.sure, links("0-0 2-1"));
  EXPECT_EQ(gold.possible, links("0-0 1-1 2-1"));
}

TEST(Links, BrokenOnesAreRefusedWithTheirPlace) {
  for (const char* line : {"0-", "-0", "0", "a-b", "0-0-0", "0-0x", "0_0", "1.5-2", "-1-2", "0--1", "99999999999-0",
                           "1048576-0", "0-0 3-4 p", "０-０", "0 - 0"}) {
    const std::string error = error_of([&] { parse_gold(line, "gold:7"); });
    EXPECT_TRUE(error.starts_with("gold:7: ")) << line << ": " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
  EXPECT_NE(error_of([] { parse_gold("0-1", "gold:7", 1); }), "");
  EXPECT_EQ(error_of([] { parse_gold("1048575-0", "gold:7"); }), "");
  EXPECT_NE(error_of([] { parse_links("0-0 0p1", "found:1"); }).find("possible"), std::string::npos);
}

// Koehn's figure of "Maria no daba una bofetada a la bruja verde" and "Mary did not slap the green witch".
TEST(Symmetrized, GrowsAsThePaperDoes) {
  const Links spanish_to_english = links("0-0 1-2 2-3 3-3 4-3 6-4 7-6 8-5");
  const Links english_to_spanish = links("0-0 1-1 1-2 4-3 6-4 7-6 8-5 5-4");
  const auto made = [&](const char* how) {
    return pharaoh(symmetrized(symmetry(how), spanish_to_english, english_to_spanish));
  };
  EXPECT_EQ(made("intersection"), "0-0 1-2 4-3 6-4 7-6 8-5");
  EXPECT_EQ(made("union"), "0-0 1-1 1-2 2-3 3-3 4-3 5-4 6-4 7-6 8-5");
  EXPECT_EQ(made("grow-diag"), "0-0 1-1 1-2 2-3 3-3 4-3 5-4 6-4 7-6 8-5");
}

TEST(Symmetrized, OnlyFinalLinksWordsThatAreFarFromAllOthers) {
  const Links forward = links("0-0 5-5 6-9"), backward = links("0-0 9-5");
  EXPECT_EQ(symmetrized(Symmetry::kGrowDiag, forward, backward), links("0-0"));
  // forward first: 5-5 and 6-9 join two words without a link each; then 9-5 finds target 5 taken
  EXPECT_EQ(symmetrized(Symmetry::kGrowDiagFinalAnd, forward, backward), links("0-0 5-5 6-9"));
  EXPECT_EQ(symmetrized(Symmetry::kGrowDiagFinalAnd, backward, forward), links("0-0 6-9 9-5"));
}

TEST(Symmetrized, NamesAreKnown) {
  EXPECT_EQ(symmetry("grow-diag-final-and"), Symmetry::kGrowDiagFinalAnd);
  EXPECT_NE(error_of([] { symmetry("intersect"); }).find("intersection"), std::string::npos);
}

// The pseudo-code on matrices, word for word.
class Matrix {
 public:
  static constexpr std::int32_t kSize = 7;
  explicit Matrix(const Links& links) {
    for (const Link& link : links) set(link.target, link.source);
  }
  bool at(std::int32_t e, std::int32_t f) const { return inside(e) && inside(f) && cells_[e * kSize + f]; }
  void set(std::int32_t e, std::int32_t f) { cells_[e * kSize + f] = true; }
  bool e_aligned(std::int32_t e) const {
    for (std::int32_t f = 0; f < kSize; ++f) {
      if (at(e, f)) return true;
    }
    return false;
  }
  bool f_aligned(std::int32_t f) const {
    for (std::int32_t e = 0; e < kSize; ++e) {
      if (at(e, f)) return true;
    }
    return false;
  }
  Links links() const {
    Links made;
    for (std::int32_t f = 0; f < kSize; ++f) {
      for (std::int32_t e = 0; e < kSize; ++e) {
        if (at(e, f)) made.push_back({f, e});
      }
    }
    return made;
  }

 private:
  static bool inside(std::int32_t i) { return i >= 0 && i < kSize; }
  bool cells_[kSize * kSize] = {};
};

Links by_the_book(const Links& e2f, const Links& f2e, bool final_and) {
  const Matrix one(e2f), two(f2e);
  Matrix alignment({});
  const std::int32_t n = Matrix::kSize;
  for (std::int32_t e = 0; e < n; ++e) {
    for (std::int32_t f = 0; f < n; ++f) {
      if (one.at(e, f) && two.at(e, f)) alignment.set(e, f);
    }
  }
  constexpr std::int32_t kNeighbouring[8][2] = {{-1, 0}, {0, -1}, {1, 0}, {0, 1}, {-1, -1}, {-1, 1}, {1, -1}, {1, 1}};
  for (bool added = true; added;) {
    added = false;
    for (std::int32_t e = 0; e < n; ++e) {
      for (std::int32_t f = 0; f < n; ++f) {
        if (!alignment.at(e, f)) continue;
        for (const auto& [de, df] : kNeighbouring) {
          const std::int32_t e_new = e + de, f_new = f + df;
          if (!one.at(e_new, f_new) && !two.at(e_new, f_new)) continue;
          if (alignment.e_aligned(e_new) && alignment.f_aligned(f_new)) continue;
          alignment.set(e_new, f_new);
          added = true;
        }
      }
    }
  }
  for (const Matrix* direction : {&one, &two}) {
    for (std::int32_t e_new = 0; e_new < n && final_and; ++e_new) {
      for (std::int32_t f_new = 0; f_new < n; ++f_new) {
        if (direction->at(e_new, f_new) && !alignment.e_aligned(e_new) && !alignment.f_aligned(f_new)) {
          alignment.set(e_new, f_new);
        }
      }
    }
  }
  return alignment.links();
}

TEST(Symmetrized, IsWhatTheDefinitionsSay) {
  std::int64_t grown = 0, finished = 0;
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    const RandomKey key(seed);
    std::uint64_t drawn = 0;
    const auto any = [&] {
      Links made;
      const std::uint64_t count = random_below(key, drawn++, 12);
      for (std::uint64_t i = 0; i < count; ++i) {
        const auto source = static_cast<std::int32_t>(random_below(key, drawn++, Matrix::kSize));
        const auto target = static_cast<std::int32_t>(random_below(key, drawn++, Matrix::kSize));
        made.push_back({source, target});
      }
      return sorted(made);
    };
    const Links forward = any();
    const Links backward = any();
    const std::set<Link> a(forward.begin(), forward.end()), b(backward.begin(), backward.end());
    Links both, either;
    for (const Link& link : a) {
      if (b.contains(link)) both.push_back(link);
    }
    for (std::int32_t s = 0; s < Matrix::kSize; ++s) {
      for (std::int32_t t = 0; t < Matrix::kSize; ++t) {
        if (a.contains({s, t}) || b.contains({s, t})) either.push_back({s, t});
      }
    }
    EXPECT_EQ(symmetrized(Symmetry::kIntersection, forward, backward), both);
    EXPECT_EQ(symmetrized(Symmetry::kUnion, forward, backward), either);
    const Links grow = symmetrized(Symmetry::kGrowDiag, forward, backward);
    const Links all = symmetrized(Symmetry::kGrowDiagFinalAnd, forward, backward);
    ASSERT_EQ(grow, by_the_book(forward, backward, false)) << pharaoh(forward) << " and " << pharaoh(backward);
    ASSERT_EQ(all, by_the_book(forward, backward, true)) << pharaoh(forward) << " and " << pharaoh(backward);
    EXPECT_TRUE(std::includes(grow.begin(), grow.end(), both.begin(), both.end()));
    EXPECT_TRUE(std::includes(all.begin(), all.end(), grow.begin(), grow.end()));
    EXPECT_TRUE(std::includes(either.begin(), either.end(), all.begin(), all.end()));
    grown += grow.size() > both.size();
    finished += all.size() > grow.size();
  }
  EXPECT_GT(grown, 100);
  EXPECT_GT(finished, 100);
}

// Two sentences by hand: A = {0-0, 1-1, 2-2} and {0-1}, S = {0-0, 3-3} and {}, P = S and {1-1} and {0-1}.
// |A| = 4, |S| = 2, |A∩S| = 1, |A∩P| = 3: precision 3/4, recall 1/2, AER 1 − 4/6.
TEST(AlignmentScore, CountsSureAndPossibleLinks) {
  AlignmentScore score;
  score.add(links("0-0 1-1 2-2"), parse_gold("0-0 3-3 1p1", "gold:1"));
  score.add(links("0-1"), parse_gold("0p1", "gold:2"));
  EXPECT_EQ(score.lines, 2);
  EXPECT_DOUBLE_EQ(score.precision(), 0.75);
  EXPECT_DOUBLE_EQ(score.recall(), 0.5);
  EXPECT_DOUBLE_EQ(score.error_rate(), 1 - 4.0 / 6);
}

TEST(AlignmentScore, IsFiniteWhenThereIsNothing) {
  AlignmentScore score;
  EXPECT_EQ(score.error_rate(), 0);
  score.add({}, {});
  EXPECT_EQ(score.precision(), 1);
  EXPECT_EQ(score.recall(), 1);
  EXPECT_EQ(score.error_rate(), 0);
  score.add({}, parse_gold("0-0", "gold:1"));
  EXPECT_EQ(score.recall(), 0);
  EXPECT_EQ(score.error_rate(), 1);
}

}  // namespace
}  // namespace regard
