// What a call of attention is about: sizes and checks of what was given, and the mechanism's own maps and tables on the
// tape, which turn it into what the schedules see (engine.cc).
#include <algorithm>

#include "attention/edits.h"
#include "attention/engine.h"
#include "autograd/by_type.h"
#include "autograd/kernel_calls.h"
#include "base/check.h"
#include "base/float_mode.h"

namespace regard {
namespace {

// For messages, put together only when they are needed.
struct ShapeOf {
  Var x;
};
std::string to_text(const ShapeOf& of) { return of.x.defined() ? regard::to_text(of.x.shape()) : "none"; }

// What a call is about, from whatever was given.
Inputs inputs_of(const Mechanism& mechanism, Var q, Var k, Var v, const AttendOptions& options) {
  const Needs needs = mechanism.needs();
  const bool pointer = mechanism.stages().read->is_pointer();
  const std::string& line = mechanism.text();
  const auto rank = [](Var x, int wanted) { return !x.defined() || x.shape().rank() == wanted; };
  const auto shape = [](Var x) { return ShapeOf{x}; };
  check(rank(q, 4) && rank(k, 4) && rank(v, 4), "attend: queries ", shape(q), ", keys ", shape(k), ", values ",
        shape(v), ": expected four dimensions each: [batch, heads, length, width]");
  check(rank(options.query_tokens, 3) && rank(options.key_tokens, 3), "attend: query tokens ",
        shape(options.query_tokens), ", key tokens ", shape(options.key_tokens),
        ": expected three dimensions each: [batch, length, width]");
  check(v.defined() || pointer, "attend: no values for \"", line, '"');
  check(q.defined() || options.query_tokens.defined(), "attend: neither queries nor their tokens for \"", line, '"');
  const Var prepared = options.prepared_keys;
  check(rank(prepared, 4) && (!prepared.defined() || (!k.defined() && !options.key_tokens.defined())),
        "attend: prepared keys are ", shape(prepared), ", keys ", shape(k), ", key tokens ", shape(options.key_tokens),
        ": expected only one of them");
  check(v.defined() || k.defined() || prepared.defined() || options.key_tokens.defined(),
        "attend: neither keys nor values for \"", line, '"');
  Inputs in;
  const Var some = q.defined() ? q : options.query_tokens;
  in.tape = &some.tape();
  in.type = some.dtype();
  in.batch = some[0];
  in.queries = q.defined() ? q[2] : options.query_tokens[1];
  in.keys = v.defined() ? v[2] : k.defined() ? k[2] : prepared.defined() ? prepared[2] : options.key_tokens[1];
  in.offset = options.first_query.value_or(0);
  in.sizes.heads = q.defined() ? q[1] : options.heads;
  in.sizes.groups = v.defined() ? v[1] : k.defined() ? k[1] : in.sizes.heads;
  in.sizes.values = v.defined() ? v[3] : 0;
  in.sizes.hidden = options.hidden;
  check((!k.defined() || k[0] == in.batch) && (!v.defined() || v[0] == in.batch) &&
            (!options.query_tokens.defined() || options.query_tokens[0] == in.batch) &&
            (!options.key_tokens.defined() || options.key_tokens[0] == in.batch),
        "attend: the batch sizes differ: queries ", shape(some), ", keys ", shape(k.defined() ? k : options.key_tokens),
        ", values ", shape(v));
  const auto fit = [&](Var x) {
    return !x.defined() || (x[1] == 0 ? in.sizes.heads == 0 : in.sizes.heads % x[1] == 0);
  };
  check(fit(k) && fit(v) && (!needs.rows || !k.defined() || !v.defined() || k[1] == v[1]),
        "attend: heads do not fit: queries ", shape(q), ", keys ", shape(k), ", values ", shape(v),
        ": expected a multiple of those of the keys, and as many of the values");
  check(!k.defined() || !v.defined() || k[2] == v[2], "attend: keys and values differ in length: keys ", shape(k),
        ", values ", shape(v), " (dimension 2: ", k.defined() ? k[2] : 0, " and ", v.defined() ? v[2] : 0, ")");
  check(!options.query_tokens.defined() || options.query_tokens[1] == in.queries, "attend: ", in.queries,
        " queries, query tokens ", shape(options.query_tokens));
  check(!options.key_tokens.defined() || options.key_tokens[1] == in.keys, "attend: ", in.keys, " keys, key tokens ",
        shape(options.key_tokens));
  in.q = q;
  in.k = k;
  in.query_tokens = options.query_tokens;
  in.key_tokens = options.key_tokens;
  const auto tokens = [&](Var rows) {
    return rows.defined() && rows[1] == 1 && in.sizes.heads == 1 ? reshape(rows, {rows[0], rows[2], rows[3]}) : Var();
  };
  if (needs.query_tokens && !in.query_tokens.defined()) in.query_tokens = tokens(q);
  if (needs.key_tokens && !in.key_tokens.defined()) in.key_tokens = tokens(k);
  check(!needs.rows || (q.defined() && (k.defined() || prepared.defined())), "attend: \"", line,
        "\" compares queries with keys, got queries ", shape(q), " and keys ", shape(k));
  check(!needs.query_tokens || in.query_tokens.defined(), "attend: \"", line, "\" with ", in.sizes.heads,
        " heads needs query_tokens");
  check(!needs.key_tokens || in.key_tokens.defined() || prepared.defined(), "attend: \"", line, "\" with ",
        in.sizes.heads, " heads needs key_tokens");
  if (needs.rows) {
    in.sizes.width = q[3];
    in.sizes.key_width = k.defined() ? k[3] : options.key_width;
  }
  if (in.query_tokens.defined()) in.sizes.query_token = in.query_tokens[2];
  if (needs.key_tokens) in.sizes.key_token = in.key_tokens.defined() ? in.key_tokens[2] : options.key_token;
  in.sizes = completed(in.sizes);
  return in;
}

// Where each position stands in its own document; those of none at 0.
Tensor places_of(Tape& tape, const Tensor& documents) {
  const Tensor dense = documents.is_dense() ? documents : documents.clone();
  const Tensor places = tape.make({documents[0], 1, documents[1]}, DType::kI32);
  for (std::int64_t item = 0; item < documents[0]; ++item) {
    const std::int32_t* ids = dense.data<std::int32_t>() + item * documents[1];
    std::int32_t* to = places.data<std::int32_t>() + item * documents[1];
    for (std::int64_t i = 0; i < documents[1]; ++i) {
      to[i] = i > 0 && ids[i] >= 0 && ids[i] == ids[i - 1] ? to[i - 1] + 1 : 0;
    }
  }
  return places;
}

void check_call(const Mechanism& mechanism, const Inputs& in, const AttendOptions& options) {
  const Shape all = {in.batch, in.sizes.heads, in.queries, in.keys};
  if (!options.lengths.empty()) {
    check(static_cast<std::int64_t>(options.lengths.size()) == in.batch, "attend: ", options.lengths.size(),
          " lengths for a batch of ", in.batch);
  }
  for (std::size_t item = 0; item < options.lengths.size(); ++item) {
    check(options.lengths[item] >= 0 && options.lengths[item] <= in.keys, "attend: item ", item, " has length ",
          options.lengths[item], ", expected 0 to ", in.keys);
  }
  if (options.documents.defined()) {
    check(options.documents.dtype() == DType::kI32 && options.documents.shape() == Shape{in.batch, in.keys},
          "attend: documents are ", options.documents, ", expected i32 ", Shape{in.batch, in.keys});
    check(in.queries == in.keys, "attend: documents with ", in.queries, " queries and ", in.keys,
          " keys, expected as many");
    const Tensor dense = options.documents.is_dense() ? options.documents : options.documents.clone();
    for (std::int64_t item = 0; item < in.batch; ++item) {
      const std::int32_t* ids = dense.data<std::int32_t>() + item * in.keys;
      std::int32_t last = -1;
      for (std::int64_t i = 0; i < in.keys; ++i) {
        check(ids[i] < 0 || ids[i] >= last, "attend: item ", item, " has document ", ids[i], " behind ", last,
              ": expected numbers that go upwards");
        if (i > 0 && ids[i] >= 0 && ids[i] == last) {
          check(ids[i - 1] == last, "attend: item ", item, ": document ", last, " has a gap at position ", i - 1);
        }
        last = std::max(last, ids[i]);
      }
    }
  }
  if (options.mask.defined()) {
    check(options.mask.dtype() == DType::kI8 && options.mask.rank() == 4 &&
              broadcast(options.mask.shape(), all, "attend: mask") == all,
          "attend: the mask is ", options.mask, ", expected i8, spread to ", all);
  }
  if (options.bias.defined()) {
    check(options.bias.shape().rank() <= 4 && broadcast(options.bias.shape(), all, "attend: bias") == all,
          "attend: the bias is ", options.bias.shape(), ", expected to be spread to ", all);
  }
  const Stages& stages = mechanism.stages();
  const std::vector<Learned>& learned = stages.learned(in.sizes).all;
  check(options.learned.size() == learned.size(), "attend: ", options.learned.size(), " learned tensors for \"",
        mechanism.text(), "\", which learns ", learned.size());
  for (std::size_t i = 0; i < learned.size(); ++i) {
    check(options.learned[i].defined() && options.learned[i].shape() == learned[i].shape, "attend: learned[", i, "], '",
          learned[i].name, "', is ", ShapeOf{options.learned[i]}, ", expected ", learned[i].shape);
  }
  if (options.edits != nullptr) check_edits(*options.edits, all);
  const Choosing* const choosing = stages.align->choosing();
  check(options.entropy == 0 ||
            (choosing != nullptr && choosing->estimator == Choosing::Estimator::kReinforce && options.draws),
        "attend: entropy ", options.entropy, " for \"", mechanism.text(), "\"", options.draws ? "" : ", not drawing",
        ": expected hard attention that draws and learns by reinforce");
  check(std::isfinite(options.entropy), "attend: entropy ", options.entropy, ", expected a number");
  check(options.dropout >= 0 && options.dropout < 1, "attend: dropout ", options.dropout, ", expected 0 to below 1");
  check(options.ids.empty() || static_cast<std::int64_t>(options.ids.size()) == in.batch,
        "attend: ", options.ids.size(), " ids for a batch of ", in.batch);
  const Given given{.queries = in.queries,
                    .keys = in.keys,
                    .offset = options.first_query.has_value(),
                    .lengths = !options.lengths.empty() || in.batch == 0,
                    .documents = options.documents.defined(),
                    .mask = options.mask.defined(),
                    .bias = options.bias.defined()};
  for (const auto& scope : stages.scopes) scope->check_call(given);
}

Lowered lower(const Stages& stages, const Inputs& in, const AttendOptions& options) {
  const Stages::AllLearned& learned = stages.learned(in.sizes);
  const auto part = [&](const Stages::Part& place) {
    return in.with(options.learned.subspan(place.begin, place.count));
  };
  const Inputs of_score = part(learned.score);
  Lowered made{.q = stages.score->lower_queries(of_score),
               .k = options.prepared_keys.defined() ? options.prepared_keys : stages.score->lower_keys(of_score),
               .theta = stages.score->lower_theta(of_score),
               .table = stages.read->lower(part(learned.read)),
               .centres = {},
               .bias = stages.score->lower_bias(of_score)};
  for (std::size_t i = 0; i < stages.scopes.size(); ++i) {
    const Var centres = stages.scopes[i]->lower(part(learned.scopes[i]));
    if (centres.defined()) made.centres = centres;
  }
  if (options.bias.defined()) made.bias = made.bias.defined() ? made.bias + options.bias : options.bias;
  const Score::Widths widths = stages.score->widths(in.sizes);
  check(made.q[3] == widths.q && made.k[3] == widths.k, "attend: queries and keys differ in width: queries ",
        made.q.shape(), ", keys ", made.k.shape());
  check((made.k[0] == in.batch || made.k[0] == 1) && made.k[2] == in.keys, "attend: prepared keys ", made.k.shape(),
        " for a batch of ", in.batch, " with ", in.keys, " keys");
  return made;
}

}  // namespace

Attention attend(const Mechanism& mechanism, Var q, Var k, Var v, const AttendOptions& options) {
  const FloatMode mode;
  check_same_type(Op::attend, {q.defined() ? q : options.query_tokens, k, v, options.bias});
  Inputs in = inputs_of(mechanism, q, k, v, options);
  check_call(mechanism, in, options);
  if (options.documents.defined()) in.places = places_of(*in.tape, options.documents);
  check_longest(mechanism.stages(), in);
  mechanism.stages().score->check_call(in);
  return attend_lowered(mechanism, in, lower(mechanism.stages(), in, options), v, options);
}

LoweredCall lower_call(const Mechanism& mechanism, Var q, Var k, Var v, AttendOptions options,
                       const std::function<std::vector<Var>(const AttendSizes&)>& learned) {
  const Inputs in = inputs_of(mechanism, q, k, v, options);
  const std::vector<Var> all = learned(in.sizes);
  options.learned = all;
  check_longest(mechanism.stages(), in);
  mechanism.stages().score->check_call(in);
  return {in, lower(mechanism.stages(), in, options)};
}

Var prepare_keys(const Mechanism& mechanism, Var k, const AttendOptions& options) {
  const Stages& stages = mechanism.stages();
  const Needs needs = mechanism.needs();
  Inputs in;
  const Var tokens = options.key_tokens.defined()                        ? options.key_tokens
                     : k.defined() && k.shape().rank() == 4 && k[1] == 1 ? reshape(k, {k[0], k[2], k[3]})
                                                                         : Var();
  const Var some = k.defined() ? k : tokens;
  check(some.defined() && (!needs.rows || (k.defined() && k.shape().rank() == 4)) &&
            (!needs.key_tokens || (tokens.defined() && tokens.shape().rank() == 3)),
        "prepare_keys: \"", mechanism.text(), "\" wants ", needs.rows ? "keys [batch, heads, length, width]" : "",
        needs.rows && needs.key_tokens ? " and " : "", needs.key_tokens ? "key tokens [batch, length, width]" : "");
  in.tape = &some.tape();
  in.type = some.dtype();
  in.k = k;
  in.key_tokens = tokens;
  in.batch = some[0];
  in.keys = k.defined() ? k[2] : tokens[1];
  in.sizes = {.heads = options.heads, .hidden = options.hidden};
  if (needs.rows) in.sizes.width = in.sizes.key_width = k[3];
  if (needs.key_tokens) in.sizes.key_token = tokens[2];
  in.sizes = completed(in.sizes);
  check_longest(stages, in);
  const Stages::Part own = stages.learned(in.sizes).score;
  check(options.learned.size() >= own.begin + own.count, "prepare_keys: ", options.learned.size(),
        " learned tensors, the score of \"", mechanism.text(), "\" has ", own.count);
  return stages.score->lower_keys(in.with(options.learned.subspan(own.begin, own.count)));
}

}  // namespace regard
