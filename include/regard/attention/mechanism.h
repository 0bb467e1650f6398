// Attention put together from stages: score | scope | align, and the weights for the asking.
//
//     const Mechanism mechanism({.name = "scaled_dot"}, {{.name = "causal"}}, {.name = "softmax"});
//     auto [context, trace] = attend(mechanism, q, k, v);
//     Tensor map = trace.weights({.head = 3, .queries = {0, 16}});          // [16, keys], when someone wants to look
//
// out_i = Σ_j p_ij·v_j, p_i = align(score(q_i, k_j) + scope(i, j)). Scores are made tile by tile and never stored:
// memory grows with the length of the sequence, not with its square, and what nobody may see costs nothing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "regard/autograd/ops.h"
#include "regard/export.h"

namespace regard {

struct Term;

// What stands behind the name of a stage: window:128, softmax:temperature=0.5, mixture(dot, cosine).
struct Arguments {
  std::vector<double> numbers = {};
  std::vector<std::string> words = {};
  std::map<std::string, std::string> settings = {};
  std::vector<Term> inner;
};
struct Term {
  std::string name;
  Arguments arguments = {};
};

struct Stages;  // the objects behind the names

// A way to attend. Copies share what it is made of, which never changes.
class REGARD_API Mechanism {
 public:
  // No scopes: global. Scopes are combined: visible is what all of them let through. An unknown name throws.
  explicit Mechanism(const Term& score, const std::vector<Term>& scopes = {}, const Term& align = {.name = "softmax"});
  const Stages& stages() const { return *stages_; }

 private:
  std::shared_ptr<const Stages> stages_;
};

// From `begin` to before `end`.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t count() const { return end > begin ? end - begin : 0; }
};

// What belongs to one call. What is given is always respected; the scopes `lengths`, `documents` and `mask` make a call
// without it an error.
struct AttendOptions {
  std::span<const std::int32_t> lengths = {};  // one an item: its first keys are real. None: all are
  Tensor documents = {};  // i32 [batch, keys], queries = keys: sequences packed one behind another, numbered upwards; a
                          // position below 0 belongs to none. Each sees its own
  Tensor mask = {};       // i8 [batch or 1, heads or 1, queries, keys]: not 0 may be seen
  std::optional<std::int64_t> first_query = {};  // where query 0 stands among the keys; needed if the numbers differ
  Var bias = {};                                 // added to the scores, spread to [batch, heads, queries, keys]
  Var theta = {};                                // what the score learns: additive [width] or [heads, width]
  float dropout = 0;
  RandomKey key = RandomKey(0);             // of this step and layer
  std::span<const std::uint64_t> ids = {};  // of the examples; none: their numbers in the batch
  bool staged = false;  // whole rows of scores, stage after stage, nothing skipped: the same bits, for those who look
                        // for a mistake
};

struct AskedWeights {
  std::int64_t item = 0;
  std::int64_t head = 0;
  std::optional<Range> queries = {};  // none: all
  bool dropped = false;               // as they were applied, after dropout
};

// One call, as the passes over it see it.
struct AttendCall {
  std::optional<Mechanism> mechanism;  // none: of nothing
  Tensor q, k, theta, bias, lengths, documents, mask, ids;
  Tensor peaks, taus;  // [batch, heads, queries]: a weight is f((score − peak) − τ)
  std::int64_t offset = 0;
  float dropout = 0;
  RandomKey key = RandomKey(0);
  bool staged = false;
};

// What is needed to make the weights of one call again; valid until its step ends, then it throws. keep() copies.
class REGARD_API AttendTrace {
 public:
  Tensor weights(const AskedWeights& asked = {}) const;  // [queries, keys], on the heap; 0 where nobody may look
  AttendTrace keep() const;

  AttendTrace() = default;
  explicit AttendTrace(AttendCall call) : call_(std::move(call)) {}

 private:
  AttendCall call_;
};

struct Attention {
  Var context;  // [batch, heads, queries, width of the values]
  AttendTrace trace;
};

// q [batch, heads, queries, width]; k [batch, groups, keys, width] and v [batch, groups, keys, width of the values],
// heads a multiple of groups: neighbouring heads share keys. A query that sees no key reads zeros, with gradient zero;
// what has weight 0 is not read at all, so a NaN in it stays where it is.
REGARD_API Attention attend(const Mechanism& mechanism, Var q, Var k, Var v, const AttendOptions& options = {});

}  // namespace regard
