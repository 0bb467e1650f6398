// Which units (words, characters, pieces) of two sentences belong together, as links; in text (Pharaoh's form), of two
// directions made one, and scored against links that people drew.
//
//     pharaoh({{0, 0}, {2, 1}})                                    // "0-0 2-1": source first, counted from 0
//     symmetrized(Symmetry::kGrowDiagFinalAnd, forward, backward)
//     AlignmentScore score;  score.add(links, parse_gold("0-0 1p1", "gold:1"));
//     score.error_rate();
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace regard {

struct Link {
  std::int32_t source = 0, target = 0;
  friend auto operator<=>(const Link&, const Link&) = default;
};
using Links = std::vector<Link>;  // sorted, none twice

constexpr std::int32_t kMostUnits = 1 << 20;  // no line has more (data/lines.h)

Links sorted(Links links);         // and none twice
Links turned(const Links& links);  // source and target change places

std::string pharaoh(const Links& links);

// Links `i-j` are sure, `ipj` possible; what is sure is possible, too.
struct GoldLinks {
  Links sure, possible;
};
// `where` names the line in errors. `first`: what the first unit is called, 0 or 1.
GoldLinks parse_gold(std::string_view line, std::string_view where, std::int32_t first = 0);
Links parse_links(std::string_view line, std::string_view where, std::int32_t first = 0);  // `i-j` only

// Koehn, Och and Marcu 2003; Koehn et al. 2005. Both directions give links source-target.
enum class Symmetry : std::uint8_t { kIntersection, kUnion, kGrowDiag, kGrowDiagFinalAnd };
Symmetry symmetry(std::string_view name);  // "intersection", "union", "grow-diag", "grow-diag-final-and"
Links symmetrized(Symmetry how, const Links& forward, const Links& backward);

// Och and Ney 2003, over all lines that were added: A the links found, S the sure ones, P the possible ones,
//
//     precision |A∩P| / |A|      recall |A∩S| / |S|      AER 1 − (|A∩S| + |A∩P|) / (|A| + |S|)
//
// Nothing of nothing is 1: who says nothing says nothing wrong.
struct AlignmentScore {
  std::int64_t lines = 0, found = 0, sure = 0, found_sure = 0, found_possible = 0;

  void add(const Links& links, const GoldLinks& gold);
  double precision() const;
  double recall() const;
  double error_rate() const;
};

}  // namespace regard
