// A random call of attend: mechanism × shape × mask × poison, from a seed. Mechanisms come from the cards: a new one
// takes part without an edit here.
//
//     Case c = drawn_case(4711);
//     Outcome outcome = run(c.clean, Weights::kPlain);
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attention/mechanism.h"
#include "regard/random.h"

namespace regard::random_call {

constexpr RandomKey kDropoutKey(11);
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

inline std::size_t size(std::int64_t x) { return static_cast<std::size_t>(x); }

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(RandomKey(seed).value()) {}
  std::uint64_t bits() { return state_ = RandomKey(state_).at(0).value(); }
  std::int64_t below(std::int64_t count) { return static_cast<std::int64_t>(bits() >> 33) % count; }
  double real() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  bool chance(double probability) { return real() < probability; }
  template <class T>
  T pick(const std::vector<T>& from) {
    return from[size(below(static_cast<std::int64_t>(from.size())))];
  }

 private:
  std::uint64_t state_;
};

// Everything that one call is given.
struct Call {
  std::optional<Mechanism> mechanism;
  Tensor q, k, query_tokens, key_tokens, v;  // what the mechanism looks at; else not defined
  Tensor bias, dy, documents, mask;
  std::vector<Tensor> learned;
  std::int64_t heads = 1, hidden = 0;
  bool pointer = false;  // the context is the weights
  std::optional<std::vector<std::int32_t>> lengths;
  std::optional<std::int64_t> first_query;
  float dropout = 0;
  std::vector<std::uint64_t> ids;
  bool staged = false;

  std::int64_t place() const { return first_query.value_or(0); }
};

// Everything that comes out of it; what was not asked for is not defined.
enum Part : std::size_t {
  kContext,
  kQueries,
  kKeys,
  kQueryTokens,
  kKeyTokens,
  kValues,
  kBias,
  kLearned  // and what else is learned behind it
};
struct Outcome {
  std::vector<Tensor> parts = std::vector<Tensor>(kLearned);
  std::vector<Tensor> weights;  // by item and head
};
std::string name_of(std::size_t part);

enum class Weights { kNone, kPlain, kDropped };

Outcome run(const Call& call, Weights asked = Weights::kNone, DType type = DType::kF32);

// A case: the call with ordinary numbers, the same with poison in some rows, and what its parts are.
struct Case {
  Draw draw;
  std::string text;
  Line line;
  std::int64_t batch, heads, groups, queries, keys, width, values;
  Call clean, dirty;
  bool poisoned = false;
  std::vector<bool> visible;                              // [batch, heads, queries, keys]
  std::vector<bool> bad_queries, bad_keys, bad_gradient;  // rows with poison: [batch, heads or groups, rows]
  double temperature = 1, scale = 1;                      // of the alignment, and the factor of the scores
  bool positional = false;                                // the score knows no more positions than the line says

  explicit Case(std::uint64_t seed) : draw(seed) {}
  bool has(std::string_view name) const {
    return std::any_of(line.scopes.begin(), line.scopes.end(), [&](const Term& each) { return each.name == name; });
  }
  std::int64_t group(std::int64_t head) const { return head / (heads / groups); }
  bool sees(std::int64_t item, std::int64_t head, std::int64_t i, std::int64_t j) const {
    return visible[size(((item * heads + head) * queries + i) * keys + j)];
  }
};

Case drawn_case(std::uint64_t seed);
void finish(Case& c);  // what is visible and the poison; may throw what a call throws

bool is_known(const Term& scope);                      // by the formulas of the test
std::vector<std::int32_t> bias_places(const Case& c);  // which element of the bias is added to which score

}  // namespace regard::random_call
