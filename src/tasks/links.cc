#include "tasks/links.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>

#include "base/check.h"
#include "base/suggest.h"

namespace regard {
namespace {

bool has(const Links& links, const Link& link) { return std::binary_search(links.begin(), links.end(), link); }

std::int64_t common(const Links& a, const Links& b) {
  return std::count_if(a.begin(), a.end(), [&](const Link& each) { return has(b, each); });
}

double ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 1 : static_cast<double>(part) / static_cast<double>(whole);
}

// Links of the union are added to those of the intersection, in the order of the paper's pseudo-code: target words one
// after another, for each the source words; a link that is added counts at once.
class Growing {
 public:
  Growing(const Links& start, const Links& all) : all_(all) {
    for (const Link& link : all) {
      sources_.resize(std::max(sources_.size(), at(link.source) + 1), false);
      targets_.resize(std::max(targets_.size(), at(link.target) + 1), false);
    }
    for (const Link& link : start) add(link);
  }

  // Until nothing changes: a neighbour of a link, diagonals too, if it is in the union and one of its units has none.
  void grow() {
    constexpr Link kNeighbours[] = {{0, -1}, {-1, 0}, {0, 1}, {1, 0}, {-1, -1}, {1, -1}, {-1, 1}, {1, 1}};
    for (bool changed = true; changed;) {
      changed = false;
      for (const Link& link : links_) {  // a set: what is added behind this one is seen on the way
        for (const Link& step : kNeighbours) {
          const Link near{link.source + step.source, link.target + step.target};
          if (!has(all_, near) || (sources_[at(near.source)] && targets_[at(near.target)])) continue;
          add(near);
          changed = true;
        }
      }
    }
  }

  // What a direction has between two units that have no link at all.
  void finish(Links direction) {
    std::sort(direction.begin(), direction.end(), TargetFirst());
    for (const Link& link : direction) {
      if (!sources_[at(link.source)] && !targets_[at(link.target)]) add(link);
    }
  }

  Links links() const { return sorted({links_.begin(), links_.end()}); }

 private:
  struct TargetFirst {
    bool operator()(const Link& a, const Link& b) const {
      return a.target != b.target ? a.target < b.target : a.source < b.source;
    }
  };
  static std::size_t at(std::int32_t unit) { return static_cast<std::size_t>(unit); }
  void add(const Link& link) {
    sources_[at(link.source)] = targets_[at(link.target)] = true;
    links_.insert(link);
  }

  const Links& all_;
  std::set<Link, TargetFirst> links_;
  std::vector<bool> sources_, targets_;
};

}  // namespace

Links sorted(Links links) {
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  return links;
}

Links turned(const Links& links) {
  Links made;
  for (const Link& link : links) made.push_back({link.target, link.source});
  return sorted(std::move(made));
}

std::string pharaoh(const Links& links) {
  std::string made;
  for (const Link& link : links) {
    fmt::format_to(std::back_inserter(made), "{}{}-{}", made.empty() ? "" : " ", link.source, link.target);
  }
  return made;
}

GoldLinks parse_gold(std::string_view line, std::string_view where, std::int32_t first) {
  constexpr std::string_view kBlanks = " \t\r";
  GoldLinks gold;
  for (std::size_t at = 0; (at = line.find_first_not_of(kBlanks, at)) != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    const std::string_view link = line.substr(at, end - at);
    const auto number = [&](std::size_t from, std::int32_t& value) {
      const auto [stop, error] = std::from_chars(link.data() + from, link.data() + link.size(), value);
      check(error == std::errc() && value >= first && value - first < kMostUnits, where, ": '", link.substr(0, 40),
            "' is no link; expected i-j or ipj with numbers from ", first, " to ", first + kMostUnits - 1);
      value -= first;
      return static_cast<std::size_t>(stop - link.data());
    };
    Link made;
    const std::size_t between = number(0, made.source);
    const bool sure = between < link.size() && link[between] == '-';
    check(sure || (between < link.size() && link[between] == 'p'), where, ": '", link.substr(0, 40),
          "' is no link; expected i-j or ipj");
    check(number(between + 1, made.target) == link.size(), where, ": '", link.substr(0, 40),
          "' is no link; expected i-j or ipj");
    if (sure) gold.sure.push_back(made);
    gold.possible.push_back(made);
    at = end;
  }
  return {sorted(std::move(gold.sure)), sorted(std::move(gold.possible))};
}

Links parse_links(std::string_view line, std::string_view where, std::int32_t first) {
  GoldLinks links = parse_gold(line, where, first);
  check(links.sure.size() == links.possible.size(), where, ": links that are only possible (ipj), expected i-j");
  return std::move(links.sure);
}

Symmetry symmetry(std::string_view name) {
  const std::vector<std::string> known = {"intersection", "union", "grow-diag", "grow-diag-final-and"};
  const auto found = std::find(known.begin(), known.end(), name);
  check(found != known.end(), "there is no symmetrisation '", name, "'", did_you_mean(std::string(name), known),
        "; expected intersection, union, grow-diag or grow-diag-final-and");
  return static_cast<Symmetry>(found - known.begin());
}

Links symmetrized(Symmetry how, const Links& forward, const Links& backward) {
  Links both, any;
  std::set_intersection(forward.begin(), forward.end(), backward.begin(), backward.end(), std::back_inserter(both));
  std::set_union(forward.begin(), forward.end(), backward.begin(), backward.end(), std::back_inserter(any));
  if (how == Symmetry::kIntersection) return both;
  if (how == Symmetry::kUnion) return any;
  Growing growing(both, any);
  growing.grow();
  if (how == Symmetry::kGrowDiagFinalAnd) {
    growing.finish(forward);
    growing.finish(backward);
  }
  return growing.links();
}

void AlignmentScore::add(const Links& links, const GoldLinks& gold) {
  ++lines;
  found += static_cast<std::int64_t>(links.size());
  sure += static_cast<std::int64_t>(gold.sure.size());
  found_sure += common(links, gold.sure);
  found_possible += common(links, gold.possible);
}

double AlignmentScore::precision() const { return ratio(found_possible, found); }
double AlignmentScore::recall() const { return ratio(found_sure, sure); }
double AlignmentScore::error_rate() const { return 1 - ratio(found_sure + found_possible, found + sure); }

}  // namespace regard
