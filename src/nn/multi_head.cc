#include "regard/nn/multi_head.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "attention/mechanism.h"
#include "attention/tiles.h"
#include "base/check.h"
#include "base/pool.h"
#include "kernels/gemm.h"
#include "kernels/scratch.h"
#include "regard/autograd/ops.h"
#include "regard/nn/stack.h"

namespace regard {
namespace {

// First weights of the maps of queries, keys and values beside Xavier's: as if the three were one map. A transformer
// learns faster so (Tatoeba zh-en, transformer-tiny, 500 updates: loss 3.67, with 1 3.79), and others begin like that.
constexpr double kFirstSize = std::numbers::sqrt2 / 2;

MultiHeadSettings completed(MultiHeadSettings s) {
  check(s.heads >= 1 && s.query >= 1, "MultiHead: ", s.heads, " heads of queries of width ", s.query,
        ", expected 1 or more of each");
  if (s.groups == 0) s.groups = s.heads;
  if (s.key == 0) s.key = s.query;
  if (s.value == 0) s.value = s.key;
  check(s.width != 0 || s.query % s.heads == 0, "MultiHead: a width of ", s.query, " does not divide into ", s.heads,
        " heads: say the width of a head");
  if (s.width == 0) s.width = s.query / s.heads;
  if (s.value_width == 0) s.value_width = s.width;
  if (s.output == 0) s.output = s.query;
  check(s.groups >= 1 && s.heads % s.groups == 0, "MultiHead: ", s.heads, " heads do not share ", s.groups,
        " groups of keys");
  const auto lines = static_cast<std::int64_t>(s.lines.size());
  check(lines == 1 || lines == s.heads, "MultiHead: ", lines, " lines for ", s.heads,
        " heads, expected 1 or one a head");
  check(lines == 1 || s.groups == s.heads, "MultiHead: heads with mechanisms of their own do not share keys, got ",
        s.groups, " groups for ", s.heads, " heads");
  return s;
}

Tensor heads_of_mask(const Tensor& mask, const std::vector<std::int64_t>& heads) {
  if (!mask.defined() || mask.rank() != 4 || mask[1] == 1) return mask;
  Tensor some = Tensor::empty({mask[0], static_cast<std::int64_t>(heads.size()), mask[2], mask[3]}, mask.dtype());
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const auto to = static_cast<std::int64_t>(i);
    check(heads[i] < mask[1], "MultiHead: the mask is ", mask, ", expected one for head ", heads[i], ", too");
    some.slice(1, to, to + 1).copy_from(mask.slice(1, heads[i], heads[i] + 1));
  }
  return some;
}

// What edits of `all` heads say to some of them.
Edits heads_of_edits(const Edits& edits, const std::vector<std::int64_t>& heads, std::int64_t all) {
  const std::vector<float>& scale = edits.head_scale;
  check(scale.empty() || static_cast<std::int64_t>(scale.size()) == all, "MultiHead: edits have ", scale.size(),
        " scales for ", all, " heads");
  Edits some{.hidden = heads_of_mask(edits.hidden, heads)};
  for (std::size_t i = 0; i < heads.size() && !scale.empty(); ++i) {
    some.head_scale.push_back(scale[static_cast<std::size_t>(heads[i])]);
  }
  for (const ReplacedRow& row : edits.rows) {
    check(row.head >= 0 && row.head < all, "MultiHead: edits replace a row of head ", row.head, ", expected below ",
          all);
    const auto found = std::find(heads.begin(), heads.end(), row.head);
    if (found == heads.end()) continue;
    some.rows.push_back(row);
    some.rows.back().head = found - heads.begin();
  }
  return some;
}

}  // namespace

Tensor MultiHeadTrace::weights(const AskedWeights& asked) const {
  for (const Part& part : parts) {
    const auto found = std::find(part.heads->begin(), part.heads->end(), asked.head);
    if (found == part.heads->end()) continue;
    AskedWeights own = asked;
    own.head = found - part.heads->begin();
    return part.trace.weights(own);
  }
  fail(ErrorKind::kInput, "weights: there is no head ", asked.head);
}

// What each part has of its heads, [batch, heads, …], put together; nothing if one has nothing.
Tensor MultiHeadTrace::joined(Tensor (AttendTrace::*of)() const) const {
  if (parts.size() == 1) return (parts[0].trace.*of)();
  std::int64_t heads = 0;
  for (const Part& part : parts) heads += static_cast<std::int64_t>(part.heads->size());
  Tensor made;
  for (const Part& part : parts) {
    const Tensor own = (part.trace.*of)();
    if (!own.defined()) return {};
    if (!made.defined()) made = Tensor::zeros(own.shape().with(1, heads), own.dtype());
    for (std::int64_t i = 0; i < own[1]; ++i) {
      const std::int64_t head = (*part.heads)[static_cast<std::size_t>(i)];
      made.slice(1, head, head + 1).copy_from(own.slice(1, i, i + 1));
    }
  }
  return made;
}

Tensor MultiHeadTrace::all_weights() const { return joined(&AttendTrace::all_weights); }
Tensor MultiHeadTrace::places() const { return joined(&AttendTrace::places); }

MultiHeadTrace MultiHeadTrace::keep() const {
  MultiHeadTrace kept;
  for (const Part& part : parts) kept.parts.push_back({part.heads, part.trace.keep()});
  return kept;
}

MultiHead::MultiHead(const Builder& builder, const MultiHeadSettings& given)
    : settings_(completed(given)),
      output_(builder.under("output"), settings_.heads * settings_.value_width, settings_.output, settings_.bias) {
  const MultiHeadSettings& s = settings_;
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> by_line;
  for (std::int64_t head = 0; head < s.heads; ++head) {
    const std::string line = Mechanism(s.lines[s.lines.size() == 1 ? 0 : static_cast<std::size_t>(head)]).text();
    const auto same =
        std::find_if(by_line.begin(), by_line.end(), [&](const auto& each) { return each.first == line; });
    if (same != by_line.end()) {
      same->second.push_back(head);
    } else {
      by_line.push_back({line, {head}});
    }
  }
  for (std::size_t i = 0; i < by_line.size(); ++i) {
    const auto& [line, heads] = by_line[i];
    const Builder own = by_line.size() == 1 ? builder : builder.under(text("part", i));
    const auto count = static_cast<std::int64_t>(heads.size());
    const std::int64_t groups = by_line.size() == 1 ? s.groups : count;
    const Needs needs = Mechanism(line).needs();
    AttendSizes sizes{.heads = count, .groups = groups, .values = s.value_width, .hidden = s.width};
    if (needs.rows) sizes.width = s.width;
    if (needs.query_tokens) sizes.query_token = s.query;
    if (needs.key_tokens) sizes.key_token = s.key;
    std::optional<Linear> query, key;
    if (needs.rows) {
      query.emplace(own.under("query"), s.query, count * s.width, s.bias, kFirstSize);
      key.emplace(own.under("key"), s.key, groups * s.width, s.bias, kFirstSize);
    }
    parts_.push_back({std::make_shared<const std::vector<std::int64_t>>(heads), query, key,
                      Linear(own.under("value"), s.value, groups * s.value_width, s.bias, kFirstSize),
                      AttentionLayer(own.under("attention"), line, sizes)});
  }
}

namespace {

void check_shape(const char* what, Var x, const Sequences* sequences) {
  if (sequences != nullptr) {
    check(x.shape().rank() == 2, "MultiHead: ", what, " ", x.shape(), ": expected two dimensions: [rows, width]");
  } else {
    check(x.shape().rank() == 3, "MultiHead: ", what, " ", x.shape(),
          ": expected three dimensions: [batch, length, width]");
  }
}

// The heads of a projection, which nobody reads again where they are a copy of it.
Var apart(Var projected, std::int64_t heads, const Sequences* sequences) {
  const Var made = sequences == nullptr ? to_heads(projected, heads)
                                        : pad_sequences(projected, sequences->lengths, sequences->longest, heads);
  if (heads > 1 || sequences != nullptr) projected.tape().release(projected);
  return made;
}

// [batch, longest, width]
Var tokens_of(Var x, const Sequences* sequences) {
  if (sequences == nullptr) return x;
  const Var padded = pad_sequences(x, sequences->lengths, sequences->longest);
  return reshape(padded, {padded[0], padded[2], padded[3]});
}

}  // namespace

MultiHeadMemory MultiHead::remember(Var keys, Var values, const Sequences* sequences) const {
  check_shape("keys", keys, sequences);
  check_shape("values", values, sequences);
  MultiHeadMemory made;
  for (const Part& part : parts_) {
    const Needs needs = part.attention.mechanism().needs();
    const std::int64_t groups = part.attention.sizes().groups;
    MultiHeadMemory::Part own;
    if (needs.rows) own.keys = apart((*part.key)(keys), groups, sequences);
    if (needs.key_tokens) own.tokens = tokens_of(keys, sequences);
    own.values = apart(part.value(values), groups, sequences);
    made.parts.push_back(own);
  }
  return made;
}

MultiHeadMemory MultiHead::prepare(const MultiHeadMemory& memory) const {
  MultiHeadMemory made;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const MultiHeadMemory::Part& from = memory.parts[i];
    const bool compares = from.keys.defined() || from.tokens.defined();
    made.parts.push_back({.values = from.values});
    if (compares) made.parts.back().prepared = parts_[i].attention.prepare_keys(from.keys, {.key_tokens = from.tokens});
  }
  return made;
}

Tensor MultiHead::length_maps(Tape& tape) const {
  const Tensor matrix = output_.weight().value.to(DType::kF32);
  const std::int64_t heads = settings_.heads, width = settings_.value_width;
  const Var each = tape.constant(matrix.reshape({heads, width, settings_.output}));
  const Tensor squares = matmul(each, transpose(each, 1, 2)).value();
  const auto wide = static_cast<std::size_t>(width);
  const Tensor made = Tensor::empty({heads, static_cast<std::int64_t>(packed_size(wide, wide))});
  for (std::int64_t head = 0; head < heads; ++head) {
    pack(regard::matrix(squares.data<float>() + head * width * width, wide, wide), made.data<float>() + head * made[1]);
  }
  return made;
}

// |v·W|² = v·(W·Wᵀ)·vᵀ: as wide as v, not as W.
void MultiHead::value_lengths(const float* values, std::int64_t count, std::int64_t stride, const Tensor& length_maps,
                              std::int64_t head, float* lengths) const {
  const auto rows = static_cast<std::size_t>(count), wide = static_cast<std::size_t>(settings_.value_width);
  const std::size_t panels = packed_size(1, wide);
  static thread_local Scratch scratch;
  float* const mapped = scratch.reserve(rows * panels);
  const Rows given{values, rows, wide, static_cast<std::size_t>(stride)};
  product_tile(given, {length_maps.data<float>() + head * length_maps[1], wide, panels},
               Tile{mapped, rows, panels, panels});
  dot_rows(given, Rows{mapped, rows, wide, panels}, lengths);
  for (std::size_t i = 0; i < rows; ++i) lengths[i] = std::sqrt(std::max(lengths[i], 0.0f));
}

Tensor MultiHead::value_lengths(std::span<const Tensor> values, const Tensor& length_maps) const {
  check(values.size() == parts_.size(), "MultiHead: values of ", values.size(), " parts, expected ", parts_.size());
  const std::int64_t width = settings_.value_width;
  Tensor made;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Tensor own = values[i].dtype() == DType::kF32 ? values[i] : values[i].to(DType::kF32);
    const std::int64_t batch = own[0], groups = own[1], keys = own[2];
    if (!made.defined()) made = Tensor::empty({batch, settings_.heads, keys});
    const auto count = static_cast<std::int64_t>(parts_[i].heads->size());
    parallel(static_cast<std::size_t>(batch * count), [&](std::size_t index) {
      const std::int64_t item = static_cast<std::int64_t>(index) / count, h = static_cast<std::int64_t>(index) % count;
      const std::int64_t head = (*parts_[i].heads)[static_cast<std::size_t>(h)], group = h / (count / groups);
      value_lengths(own.data<float>() + (item * groups + group) * keys * width, keys, width, length_maps, head,
                    made.data<float>() + (item * settings_.heads + head) * keys);
    });
  }
  return made;
}

Tensor MultiHead::value_lengths(const MultiHeadMemory& memory) const {
  std::vector<Tensor> values;
  for (const MultiHeadMemory::Part& part : memory.parts) values.push_back(part.values.value());
  return value_lengths(values, length_maps(memory.parts[0].values.tape()));
}

std::optional<MultiHead::Maps> MultiHead::maps() const {
  const Part& part = parts_[0];
  if (parts_.size() > 1 || settings_.groups != settings_.heads || !part.query || !part.key) return {};
  return Maps{*part.query, *part.key, part.value, output_, part.attention.mechanism()};
}

MultiHeadResult MultiHead::operator()(Var queries, Var keys, Var values, const AttendOptions& options) const {
  check_shape("queries", queries, nullptr);
  return read(queries, remember(keys, values), options);
}

MultiHeadResult MultiHead::read(Var queries, const MultiHeadMemory& memory, const AttendOptions& options,
                                const Sequences* sequences) const {
  return read(queries, memory, options, sequences, false);
}

MultiHeadResult MultiHead::watch(Var queries, const MultiHeadMemory& memory, const AttendOptions& options,
                                 const Sequences* sequences) const {
  check(options.dropout == 0, "MultiHead: a dropout of ", options.dropout, " of weights that are watched");
  return read(queries, memory, options, sequences, true);
}

Var MultiHead::by_head(std::span<const Var> of_parts) const {
  if (of_parts.size() == 1) return of_parts[0];
  std::vector<Var> heads(static_cast<std::size_t>(settings_.heads));
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    for (std::size_t h = 0; h < parts_[i].heads->size(); ++h) {
      const auto at = static_cast<std::int64_t>(h);
      heads[static_cast<std::size_t>((*parts_[i].heads)[h])] = slice(of_parts[i], 1, at, at + 1);
    }
  }
  return concat(heads, 1);
}

MultiHeadResult MultiHead::read(Var queries, const MultiHeadMemory& memory, const AttendOptions& options,
                                const Sequences* sequences, bool watched) const {
  check_shape("queries", queries, sequences);
  check(memory.parts.size() == parts_.size(), "MultiHead: a memory of ", memory.parts.size(), " parts, expected ",
        parts_.size());
  check(!options.bias.defined() && !options.query_tokens.defined() && !options.key_tokens.defined(),
        "MultiHead: tokens and a bias cannot be given");
  MultiHeadResult made;
  const auto count_of_parts = static_cast<std::int64_t>(parts_.size());
  const std::span<Var> contexts = make_vars(queries.tape(), count_of_parts),
                       weights = make_vars(queries.tape(), watched ? count_of_parts : 0);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    const auto count = static_cast<std::int64_t>(part.heads->size());
    AttendOptions own = options;
    own.key = options.key.at(i);  // parts drop apart from each other
    own.mask = heads_of_mask(options.mask, *part.heads);
    Edits edits;
    if (options.edits != nullptr && parts_.size() > 1) {
      edits = heads_of_edits(*options.edits, *part.heads, settings_.heads);
      own.edits = &edits;
    }
    const Needs needs = part.attention.mechanism().needs();
    const MultiHeadMemory::Part& seen = memory.parts[i];
    const Var q = needs.rows ? apart((*part.query)(queries), count, sequences) : Var();
    if (needs.query_tokens || !needs.rows) own.query_tokens = tokens_of(queries, sequences);
    own.prepared_keys = seen.prepared;
    own.key_tokens = seen.tokens;
    const Attention looked = part.attention(q, seen.keys, watched ? with_weights(seen.values) : seen.values, own);
    made.trace.parts.push_back({part.heads, looked.trace});
    contexts[i] = looked.context;
    if (!watched) continue;
    const std::int64_t width = seen.values[3];
    contexts[i] = slice(looked.context, 3, 0, width);
    weights[i] = slice(looked.context, 3, width, width + seen.values[2]);
  }
  if (watched) made.weights = by_head(weights);
  const Var all = by_head(contexts);
  made.output = output_(sequences != nullptr ? unpad_sequences(all, sequences->lengths)
                                             : reshape(transpose(all, 1, 2), {all[0], all[2], all[1] * all[3]}));
  return made;
}

}  // namespace regard
