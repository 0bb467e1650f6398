// Attention put together from stages, score | scope | align | read, and the weights for the asking.
//
//     const Mechanism mechanism("scaled_dot | causal");
//     auto [context, trace] = attend(mechanism, q, k, v);
//     Tensor map = trace.weights({.head = 3, .queries = Range{0, 16}});     // [16, keys], when someone wants to look
//
// out_i = Σ_j p_ij·v_j, p_i = align(score(q_i, k_j) + scope(i, j)). Scores are made tile by tile and never stored:
// memory grows with the length of the sequence, not with its square, and what nobody may see costs nothing.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regard/autograd/ops.h"
#include "regard/export.h"

namespace regard {

struct Stages;  // the objects behind the names

struct AttendSizes {
  std::int64_t heads = 1;
  std::int64_t groups = 1;                      // heads of the keys
  std::int64_t width = 0;                       // of a query of one head
  std::int64_t key_width = 0;                   // of a key of one head; 0: the same
  std::int64_t values = 0;                      // of a value of one head
  std::int64_t query_token = 0, key_token = 0;  // of what queries and keys are made from
  std::int64_t hidden = 0;  // of one head, for scores that learn maps of their own and whose line does not say it
  bool operator==(const AttendSizes&) const = default;
};

// A tensor that a mechanism learns, and how it starts.
struct Learned {
  enum class Start { kXavier, kNormal, kUniform, kZeros };
  std::string name;
  Shape shape;
  Start start = Start::kXavier;
  double size = 0;     // of kNormal its deviation, of kUniform its limit
  bool trains = true;  // else it stays as it was drawn
};

// What a mechanism wants to be given.
struct Needs {
  bool rows = false;                              // q and k by head, in a space where they can be compared
  bool query_tokens = false, key_tokens = false;  // what they are made from, instead or as well
};

// How many positions it was made for.
inline constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max();
struct Longest {
  std::int64_t queries = kEndless, keys = kEndless;
};

// A way to attend, named by a line (docs/mechanisms.md): score ['|' scope {'&' scope}] ['|' align] ['|' read]. Copies
// share what it is made of, which never changes.
class REGARD_API Mechanism {
 public:
  explicit Mechanism(std::string_view line);  // throws an Error of one line that says what is wrong and where
  const std::string& text() const;            // the line with all its parts
  std::vector<Learned> learned(const AttendSizes& sizes) const;
  Needs needs() const;
  Longest longest() const;
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

// A query that reads with the weights it is given, whatever its scores are and whatever is hidden from it.
struct ReplacedRow {
  std::int64_t item = 0, head = 0, query = 0;
  std::vector<float> weights = {};  // [keys]; a key of weight 0 is not read. Neither gated nor dropped
};

// What if: changes to one call that leave the model alone. Whoever is not named has the bits it had without them.
//
//     Edits edits{.head_scale = {1, 0, 1, 1}};                              // without the second head
//     attend(mechanism, q, k, v, {.edits = &edits});
struct Edits {
  Tensor hidden = {};                  // i8 [batch or 1, heads or 1, queries, keys]: not 0 may not be seen
  std::vector<float> head_scale = {};  // one a head: what its context is multiplied with. None: all 1
  std::vector<ReplacedRow> rows = {};  // their gradient goes to the values alone
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
  std::span<const Var> learned = {};             // as Mechanism::learned lists it
  Var query_tokens = {}, key_tokens = {};        // [batch, length, width]; none, with one head: the rows of q and k
  Var prepared_keys = {};                        // what prepare_keys made, instead of k and key_tokens,
  std::int64_t key_width = 0, key_token = 0;     // and how wide these were
  std::int64_t heads = 1;                        // if q is not given: how many the mechanism makes of the tokens
  std::int64_t hidden = 0;                       // AttendSizes
  float dropout = 0;
  RandomKey key = RandomKey(0);             // of this step and layer
  std::span<const std::uint64_t> ids = {};  // of the examples; none: their numbers in the batch
  // Of hard attention. It draws: other keys for every key, example, head and place of a query. Else, outside training,
  // it reads the likeliest key or what it expects, as its line says.
  bool draws = true;
  // What is minimised has entropy·H(p) of every row added, H = −Σ p·log p: below 0 it rewards those who are not yet
  // sure, above 0 those who are. Of hard attention that draws and learns by reinforce.
  float entropy = 0;
  const Edits* edits = nullptr;  // read during the call
  bool weights = false;          // all_weights() of the trace will be asked: cheaper if they are made on the way
  bool staged = false;  // whole rows of scores, stage after stage, nothing skipped: the same bits, for those who look
                        // for a mistake
};

struct AskedWeights {
  std::int64_t item = 0;
  std::int64_t head = 0;
  std::optional<Range> queries = {};  // none: all
  bool dropped = false;               // as they were applied, after dropout
  bool expected = false;              // of hard attention: what its keys are drawn from, instead of those it read with
};

// One call, as the passes over it see it.
struct AttendCall {
  std::optional<Mechanism> mechanism;  // none: of nothing
  AttendSizes sizes;
  std::int64_t batch = 0, queries = 0, keys = 0;
  Tensor q, k;     // as the score wants them; a batch of 1 serves all items
  Tensor theta;    // [heads or 1, …]: what the score learns, as its tiles want it
  Tensor table;    // [heads or 1, …]: the same of the read
  Tensor centres;  // [batch, heads, queries]: what a scope knows about a query
  Tensor bias, lengths, documents, mask, ids;
  Tensor peaks, taus;  // [batch, heads, queries]: a weight is f((score − peak) − τ)
  Tensor choices;      // i32 [batch, heads, queries, samples]: the keys that were chosen; not defined: all are read
  Tensor advantage;    // [batch, queries]; not defined: nobody asks for it
  Tensor replaced;     // i32 [rows, 3], of rows that were replaced: item, head and query
  Tensor replaced_by;  // [rows, keys]: their weights
  Tensor weights;      // [batch, heads, queries, keys], if they are made on the way
  bool draws = true;
  float entropy = 0;
  std::int64_t offset = 0;
  float dropout = 0;
  RandomKey key = RandomKey(0);
  bool staged = false;
};

// What is needed to make the weights of one call again; valid until its step ends, then it throws. keep() copies.
class REGARD_API AttendTrace {
 public:
  Tensor weights(const AskedWeights& asked = {}) const;  // [queries, keys], on the heap; 0 where nobody may look
  // Of every item and head: [batch, heads, queries, keys]. If the call made them on the way, as long as the trace.
  Tensor all_weights() const;
  Tensor scores(const AskedWeights& asked = {}) const;  // what they are made of, scopes added; −∞ where nobody may look
  AttendTrace keep() const;
  // Of a scope that says where to look (local_p): the place as a share of the sequence, [batch, heads, queries]; not
  // defined: no scope does.
  Tensor places() const { return call_.centres; }
  // Of hard attention that draws: the keys it chose, i32 [batch, heads, queries, samples]; −1 where nothing is seen.
  Tensor choices() const { return call_.draws ? call_.choices : Tensor(); }
  // Of one that learns by reinforce: [batch, queries], zeros, to be filled before backward with loss − baseline, how
  // much worse than usual it went after this query looked (nn/hard_baseline.h). advantage·Σ(onehot − p) is what the
  // scores get, an estimate of the gradient of the expected loss; nothing comes to them through the context.
  Tensor advantage() const { return call_.advantage; }

  AttendTrace() = default;
  explicit AttendTrace(AttendCall call) : call_(std::move(call)) {}

 private:
  Tensor map(const AskedWeights& asked, bool scores) const;

  AttendCall call_;
};

struct Attention {
  Var context;  // [batch, heads, queries, width of the values]; of a pointer [batch, heads, queries, keys], the weights
  AttendTrace trace;
};

// q [batch, heads, queries, width]; k [batch, groups, keys, width] and v [batch, groups, keys, width of the values],
// heads a multiple of groups: neighbouring heads share keys. What a mechanism does not look at need not be given: q and
// k if it needs no rows, v of a pointer. A query that sees no key reads zeros, with gradient zero;
// what has weight 0 is not read at all, so a NaN in it stays where it is.
REGARD_API Attention attend(const Mechanism& mechanism, Var q, Var k, Var v, const AttendOptions& options = {});

// The keys as the score wants them, mapped if it has maps, for a decoder that looks at them once a step: given as
// options.prepared_keys, the result is that of k, bit for bit. Of the options it takes learned, key_tokens, heads,
// hidden.
REGARD_API Var prepare_keys(const Mechanism& mechanism, Var k, const AttendOptions& options = {});

}  // namespace regard
