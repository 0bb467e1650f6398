#include "regard/attention/explain.h"

#include <algorithm>
#include <cmath>

#include "attention/engine.h"
#include "base/check.h"
#include "base/pool.h"
#include "kernels/target.h"
#include "tensor/arena.h"

namespace regard {
namespace {

ExplainShape completed(const Mechanism& mechanism, ExplainShape shape) {
  if (shape.groups == 0) shape.groups = shape.heads;
  if (shape.keys == 0) shape.keys = shape.queries;
  if (shape.values == 0) shape.values = shape.width;
  if (shape.query_token == 0) shape.query_token = shape.heads * shape.width;
  if (shape.key_token == 0) shape.key_token = shape.heads * shape.width;
  if (!shape.first_query) shape.first_query = std::max<std::int64_t>(0, shape.keys - shape.queries);
  for (const std::int64_t size :
       {shape.batch, shape.heads, shape.groups, shape.queries, shape.keys, shape.width, shape.values}) {
    check(size > 0 && size <= std::int64_t{1} << 24, "explain: a size of ", size, ", expected 1 to 16777216");
  }
  check(shape.heads % shape.groups == 0, "explain: ", shape.heads, " heads and ", shape.groups,
        " of the keys, expected a multiple");
  check(shape.dtype == DType::kF32 || shape.dtype == DType::kF64, "explain: \"", mechanism.text(), "\" on ",
        shape.dtype, ", expected f32 or f64");
  return shape;
}

// What a call of so many items makes of its inputs before it computes scores.
struct Maps {
  Shape q, k, theta, table, centres, bias;  // of rank 0: none
  AttendSizes sizes;
  std::size_t used = 0;
  bool any = false;
};

Maps maps_of(const Mechanism& mechanism, const ExplainShape& shape, std::int64_t batch) {
  const Needs needs = mechanism.needs();
  Tape tape;
  const auto zeros = [&](const Shape& of) { return tape.variable(Tensor::zeros(of, shape.dtype)); };
  AttendOptions options;
  options.heads = shape.heads;
  options.hidden = shape.hidden;
  options.first_query = shape.first_query;
  if (needs.query_tokens) options.query_tokens = zeros({batch, shape.queries, shape.query_token});
  if (needs.key_tokens) options.key_tokens = zeros({batch, shape.keys, shape.key_token});
  const Var q = needs.rows           ? zeros({batch, shape.heads, shape.queries, shape.width})
                : needs.query_tokens ? Var()
                                     : zeros({batch, shape.heads, shape.queries, 1});
  const Var k = needs.rows ? zeros({batch, shape.groups, shape.keys, shape.width}) : Var();
  const bool pointer = mechanism.stages().read->is_pointer();
  const Var v = pointer && (k.defined() || needs.key_tokens) ? Var() : zeros({batch, shape.groups, shape.keys, 1});
  std::size_t before = 0;
  const LoweredCall call = lower_call(mechanism, q, k, v, options, [&](AttendSizes sizes) {
    std::vector<Var> learned;
    for (const Learned& each : mechanism.learned(sizes)) learned.push_back(zeros(each.shape));
    before = tape.arena().used();
    return learned;
  });
  const auto shape_of = [](Var x) { return x.defined() ? x.shape() : Shape(); };
  const Lowered& made = call.made;
  const auto is = [](Var a, Var b) { return b.defined() && a.value().raw() == b.value().raw(); };
  return {.q = made.q.shape(),
          .k = made.k.shape(),
          .theta = shape_of(made.theta),
          .table = shape_of(made.table),
          .centres = shape_of(made.centres),
          .bias = shape_of(made.bias),
          .sizes = call.in.sizes,
          .used = tape.arena().used() - before,
          .any = !is(made.q, q) || !is(made.k, k) || made.theta.defined() || made.table.defined() ||
                 made.centres.defined() || made.bias.defined()};
}

// A tensor whose shape is looked at and nothing else.
Tensor hollow(const Shape& shape, DType type) {
  if (shape.rank() == 0) return {};
  Shape ones;
  for (int i = 0; i < shape.rank(); ++i) ones = ones.plus(1);
  return Tensor::zeros(ones, type).expand(shape);
}

double visible_pairs(const Stages& stages, const ExplainShape& shape) {
  double sum = 0;
  for (std::int64_t i = 0; i < shape.queries; ++i) {
    Place place;
    place.queries = {i, i + 1};
    place.keys = place.sequence = {0, shape.keys};
    place.offset = *shape.first_query;
    Range seen = place.keys;
    for (const auto& scope : stages.scopes) {
      const Range own = scope->visible(place);
      seen = {std::max(seen.begin, own.begin), std::min(seen.end, own.end)};
    }
    sum += static_cast<double>(seen.count());
  }
  return sum * static_cast<double>(shape.batch * shape.heads);
}

std::string mib(std::size_t bytes) {
  const double size = static_cast<double>(bytes) / (1 << 20);
  return text(number_text(std::round(size * 100) / 100), " MiB");
}

std::vector<std::string> why_slower(const Mechanism& mechanism, const Explanation& told, const EngineRoom& room,
                                    const Shape& keys) {
  const Stages& stages = mechanism.stages();
  const ExplainShape& shape = told.shape;
  std::vector<std::string> all;
  const auto say = [&](const auto&... parts) { all.push_back(text(parts...)); };
  if (shape.dtype == DType::kF64) say("f64 runs the plain references, which check the kernels of f32");
  const std::string& align = stages.line.align.name;
  if (!stages.align->streams()) {
    say(align, " needs whole rows: a thread holds ", mib(room.row_bytes),
        " of scores, where softmax goes from tile to tile");
  } else if (room.whole_rows) {
    say("a pointer reads whole rows: its weights are the result, ", shape.keys, " a query");
  }
  if (stages.align->draws()) say("hard draws its keys one row after another, in plain code");
  const std::string& score = stages.line.score.name;
  if (score == "mixture") {
    say("mixture computes its scores one after another");
  } else if (!stages.score->tiles().is_product()) {
    say(score, " is no matrix product: ", find_card(score)->kernel);
  }
  const auto idle = [](std::int64_t width) { return (16 - width % 16) % 16; };
  if (idle(keys[3]) != 0) {
    say("width ", keys[3], " is no multiple of 16: of the last 16 lanes ", idle(keys[3]),
        " are idle where rows are added up", stages.score->tiles().is_product() ? ", in the backward pass" : "");
  }
  if (!stages.read->is_pointer() && idle(shape.values) != 0) {
    say("values ", shape.values, " wide are no multiple of 16: of the last 16 lanes ", idle(shape.values), " are idle");
  }
  if (stages.score->tiles().is_product() && room.unit_rows < 12) {
    say(room.unit_rows, room.unit_rows == 1 ? " query uses" : " queries use",
        " one packing of the keys, which pays from a dozen on");
  }
  for (std::size_t i = 0; i < stages.scopes.size(); ++i) {
    if (stages.scopes[i]->gates()) say(stages.line.scopes[i].name, " changes every weight once more");
    if (stages.line.scopes[i].name == "mask") say("mask is looked at element by element for every tile");
  }
  if (room.pieces < told.threads) {
    say("the backward pass is ", room.pieces, room.pieces == 1 ? " piece" : " pieces",
        " of work, one an item and head ", "of the keys, for ", told.threads, " threads");
  }
  return all;
}

}  // namespace

Explanation explain(const Mechanism& mechanism, const ExplainShape& asked) {
  const Stages& stages = mechanism.stages();
  Explanation told;
  told.line = mechanism.text();
  told.shape = completed(mechanism, asked);
  const ExplainShape& shape = told.shape;
  told.score = find_card(stages.line.score.name)->kernel;
  told.align = find_card(stages.line.align.name)->kernel;
  told.target = shape.dtype == DType::kF64 ? "reference" : target();
  told.threads = threads();

  // One item and two tell what each of them takes; most scores have no maps, which one query tells.
  ExplainShape least = shape;
  least.queries = least.keys = 1;
  least.first_query = 0;
  Maps maps = maps_of(mechanism, least, 1);
  AttendCall call;
  call.mechanism = mechanism;
  call.batch = shape.batch;
  call.queries = shape.queries;
  call.keys = shape.keys;
  call.offset = *shape.first_query;
  if (maps.any) {
    const std::size_t one = maps_of(mechanism, shape, 1).used;
    maps = maps_of(mechanism, shape, 2);
    told.maps = one + (maps.used - one) * static_cast<std::size_t>(shape.batch - 1);
  } else {
    maps.q = {2, shape.heads, shape.queries, shape.width};
    maps.k = {2, shape.groups, shape.keys, shape.width};
  }
  call.sizes = maps.sizes;
  const auto all_items = [&](Shape of) {  // a first size of 2 is the items'
    Shape made;
    for (int i = 0; i < of.rank(); ++i) made = made.plus(i == 0 && of[0] == 2 ? shape.batch : of[i]);
    return made;
  };
  call.q = hollow(all_items(maps.q), shape.dtype);
  call.k = hollow(all_items(maps.k), shape.dtype);
  call.theta = hollow(maps.theta, shape.dtype);
  call.table = hollow(maps.table, shape.dtype);
  call.centres = hollow(all_items(maps.centres), shape.dtype);
  call.bias = hollow(maps.bias.rank() == 4 ? all_items(maps.bias) : maps.bias, shape.dtype);
  const bool pointer = stages.read->is_pointer();
  const Tensor values = pointer ? Tensor() : hollow({shape.batch, shape.groups, shape.keys, shape.values}, shape.dtype);
  const EngineRoom room = engine_room(call, values, call.bias.defined());
  told.whole_rows = room.whole_rows;
  told.forward_bytes = room.forward + told.maps;
  told.backward_bytes = room.backward + told.maps;

  told.pairs = static_cast<double>(shape.batch * shape.heads) * static_cast<double>(shape.queries * shape.keys);
  const bool known =
      std::all_of(stages.scopes.begin(), stages.scopes.end(), [](const auto& scope) { return scope->sees_by_place(); });
  if (known) told.visible_pairs = visible_pairs(stages, shape);
  const double seen = told.visible_pairs.value_or(told.pairs);
  const double score = score_flops(stages, maps.q[3]);
  const double read = pointer ? 0 : 2 * static_cast<double>(shape.values);
  told.forward_flops = seen * (score + read);
  told.backward_flops = seen * ((room.holds_scores ? 2 : 3) * score + 2 * read);
  told.slower = why_slower(mechanism, told, room, maps.k);
  return told;
}

}  // namespace regard
