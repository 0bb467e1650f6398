#include "attention/mechanism.h"

#include <algorithm>

#include "regard/autograd/ops.h"

namespace regard {

Mechanism::Mechanism(std::string_view line) {
  auto stages = std::make_shared<Stages>();
  stages->line = parse_line(line);
  stages->text = to_text(stages->line);
  stages->score = make_stage<Score>(stages->line.score);
  for (const Term& scope : stages->line.scopes) stages->scopes.push_back(make_stage<Scope>(scope));
  stages->align = make_stage<Align>(stages->line.align);
  Term read = stages->line.read;
  if (read.name == "relative_sum") read.inner = {stages->line.score};  // whose distance it takes
  stages->read = make_stage<Read>(read);
  stages_ = std::move(stages);
}

const std::string& Mechanism::text() const { return stages_->text; }

std::vector<Learned> Mechanism::learned(const AttendSizes& sizes) const {
  return stages_->learned(completed(sizes)).all;
}

Needs Mechanism::needs() const {
  Needs all = stages_->score->needs();
  for (const auto& scope : stages_->scopes) {
    const Needs more = scope->needs();
    all = {all.rows || more.rows, all.query_tokens || more.query_tokens, all.key_tokens || more.key_tokens};
  }
  return all;
}

Longest Mechanism::longest() const { return stages_->score->longest(); }

const Stages::AllLearned& Stages::learned(const AttendSizes& sizes) const {
  const std::lock_guard lock(mutex_);
  for (const AllLearned& each : known_) {
    if (each.sizes == sizes) return each;
  }
  AllLearned made{.sizes = sizes, .all = {}, .score = {}, .read = {}, .scopes = {}};
  const auto add = [&](std::vector<Learned> part) {
    const Part place{made.all.size(), part.size()};
    std::move(part.begin(), part.end(), std::back_inserter(made.all));
    return place;
  };
  made.score = add(score->learned(sizes));
  for (const auto& scope : scopes) made.scopes.push_back(add(scope->learned(sizes)));
  made.read = add(read->learned(sizes));
  return known_.emplace_back(std::move(made));
}

AttendSizes completed(AttendSizes sizes) {
  if (sizes.key_width == 0) sizes.key_width = sizes.width;
  const std::int64_t token = sizes.key_token > 0 ? sizes.key_token : sizes.query_token;
  if (sizes.hidden == 0) sizes.hidden = sizes.width > 0 ? sizes.width : token / std::max<std::int64_t>(1, sizes.heads);
  return sizes;
}

std::int64_t hidden_of(const Term& term, const AttendSizes& sizes) {
  const std::optional<double> given = number_of(term, "hidden");
  return given ? static_cast<std::int64_t>(*given) : sizes.hidden;
}

Var to_heads(Var x, std::int64_t heads) {
  if (heads == 1) return reshape(x, {x[0], 1, x[1], x[2]});
  return transpose(reshape(x, {x[0], x[1], heads, x[2] / std::max<std::int64_t>(1, heads)}), 1, 2);
}

Var tokens_for_all(Var x, std::int64_t heads) {
  const Var one = reshape(x, {x[0], 1, x[1], x[2]});
  if (heads == 1) return one;
  const std::vector<Var> all(static_cast<std::size_t>(heads), one);
  return concat(all, 1);
}

Var nothing(const Inputs& in, std::int64_t heads, std::int64_t count) {
  return in.tape->constant(in.tape->make({1, heads, count, 0}, in.type));
}

Var cut_table(Var table, std::int64_t begin, std::int64_t count) {
  return reshape(slice(table, 1, begin, begin + count), {1, table[0], count, table[2]});
}

void check_longest(const Stages& stages, const Inputs& in) {
  const auto [queries, keys] = stages.score->longest();
  if (keys == kEndless) return;
  const auto refuse = [&](std::int64_t most, const auto&... got) {  // texts are made for errors alone
    fail(ErrorKind::kInput, "attend: ", to_text(stages.line.score), " is made for at most ", most, " positions, got ",
         got...);
  };
  check(!in.places.defined(), "attend: ", stages.line.score.name,
        ": positions of packed documents are not known to it");
  if (in.keys > keys) refuse(keys, in.keys, " keys");
  if (queries != kEndless && (in.offset < 0 || in.offset + in.queries > queries)) {
    refuse(queries, "queries ", in.offset, " to ", in.offset + in.queries);
  }
}

}  // namespace regard
