// The schedules of attention: forward, backward and weights are three drivers over the same stages. Tiles have 128
// keys, counted from the first of their own sequence, so that what a row computes depends on nothing but its sequence;
// a row knows nothing of the rows beside it, so their number is a matter of speed. Only peak and τ of a row are kept;
// the other two passes make the scores again, unless they take long and little room: then backward finds them held.
// What a block does is in block.h, what blocks there are in plan.h.
#include "attention/engine.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "attention/block.h"
#include "autograd/by_type.h"
#include "autograd/kernel_calls.h"
#include "base/check.h"
#include "base/float_mode.h"
#include "base/flops.h"
#include "base/pool.h"

namespace regard {
namespace {

using namespace schedule;

// What a forward pass holds beside its result: so many units prepared, and the memory of every thread.
template <class T>
struct ForwardRoom {
  template <class Memory>
  ForwardRoom(const View<T>& view, const Plan& plan, Memory& arena)
      : workers(threads()),
        slots(std::min(view.batch * view.units(), workers)),
        keys(view, plan, slots, false, arena),
        values(plan, slots * view.unit_values(), view.value_width, false, true, arena),
        buffers(view, plan, false),
        memory(allocate<T>(arena, workers * buffers.total)) {}

  std::int64_t workers, slots;
  PreparedKeys<T> keys;
  Packed<T> values;
  Buffers<T> buffers;
  T* memory;
};

// The same of a backward pass. What shares a gradient is one piece of work, done in the order of heads, items and
// queries.
template <class T>
struct BackwardRoom {
  template <class Memory>
  BackwardRoom(const View<T>& view, const Plan& plan, bool bias_learns, Memory& arena)
      : all_items(view.shares_keys || view.shares_queries || (bias_learns && view.bias_steps[0] == 0)),
        all_heads(bias_learns && view.bias_steps[1] == 0),
        unit_pieces(all_heads ? 1 : view.units()),
        pieces((all_items ? 1 : view.batch) * unit_pieces),
        slots(std::min<std::int64_t>(pieces, threads())),
        key_numbers(view.unit_keys() * view.keys * view.key_width),
        value_numbers(view.unit_values() * view.keys * view.value_width),
        keys(view, plan, slots, true, arena),
        values(plan, slots * view.unit_values(), view.value_width, true, false, arena),
        buffers(view, plan, true),
        memory(allocate<T>(arena, slots * buffers.total)) {
    if (view.tiles.prepares_keys()) d_prepared = allocate<T>(arena, slots * key_numbers);
  }

  bool all_items, all_heads;
  std::int64_t unit_pieces, pieces, slots, key_numbers, value_numbers;  // numbers of a unit
  PreparedKeys<T> keys;
  Packed<T> values;
  Buffers<T> buffers;
  T *memory, *d_prepared = nullptr;
};

// What is learned by all items has a gradient of each, added up in their order.
Shape part_shape(const AttendCall& call, const Tensor& learned) { return {call.batch, call.sizes.heads, learned[1]}; }

// Scores that take long to make are held for the backward pass if they need no more room than the queries: so memory
// stays linear in the sequence. Those of a short product are made again in less time than they are fetched.
bool holds_scores(const AttendCall& call) {
  constexpr std::int64_t kLongProduct = 128;
  const Stages& stages = call.mechanism->stages();
  const bool slow = !stages.score->tiles().is_product() || call.q[3] >= kLongProduct;
  return slow && call.keys <= call.q[3] && stages.align->needs_scores() && !call.staged;
}
// The same of dropout's choice, a bit a pair.
std::int64_t kept_bytes(const Plan& plan) { return plan.tiles * static_cast<std::int64_t>(kKeptBytes); }  // of a query
bool holds_kept(const AttendCall& call, const Plan& plan) {
  return call.dropout > 0 && !call.staged &&
         kept_bytes(plan) <= call.q[3] * static_cast<std::int64_t>(bytes_of(call.q.dtype()));
}
Shape map_shape(const AttendCall& call) { return {call.batch, call.sizes.heads, call.queries, call.keys}; }

// What a call keeps of its rows. `memory` makes tensors.
template <class Memory>
void make_state(AttendCall& call, DType type, Memory& memory) {
  const Choosing* const choosing = call.mechanism->stages().align->choosing();
  const std::int64_t heads = call.sizes.heads;
  call.ids = memory.make({call.batch, 2}, DType::kI32);
  call.peaks = memory.make({call.batch, heads, call.queries}, type);
  call.taus = memory.make({call.batch, heads, call.queries}, type);
  if (choosing == nullptr) return;
  if (call.draws || choosing->largest) {
    call.choices = memory.make({call.batch, heads, call.queries, call.draws ? choosing->samples : 1}, DType::kI32);
  }
  if (call.draws && choosing->estimator == Choosing::Estimator::kReinforce) {
    call.advantage = memory.make({call.batch, call.queries}, type);
  }
}

// What a worker will probably turn to next: keys and values of a unit and the first head that looks at it, backward
// with all gradients. What is wanted first is added last.
template <class T>
void fetch_unit(const View<T>& view, std::int64_t number, const T* context, const T* dy, const Outlets<T>* to,
                Ahead& ahead) {
  const bool plain = view.v != nullptr && !view.shares_keys && !view.shares_queries;
  if (!plain || number >= view.batch * view.units()) return;
  const std::int64_t row = number * view.unit_heads() * view.queries;
  const std::int64_t key = number * view.unit_keys() * view.keys, value = number * view.unit_values() * view.keys;
  const auto add = [&](const T* of, std::int64_t first, std::int64_t count, std::int64_t width) {
    ahead.add(of + first * width, size(count * width) * sizeof(T) / sizeof(float));
  };
  if (to != nullptr) add(to->dq, row, view.queries, view.width);
  add(context, row, view.queries, view.value_width);
  if (to != nullptr) add(dy, row, view.queries, view.value_width);
  add(view.q, row, view.queries, view.width);
  add(view.v, value, view.keys, view.value_width);
  add(view.k, key, view.keys, view.key_width);
  if (to != nullptr) add(to->dv, value, view.keys, view.value_width);
  if (to != nullptr && !view.tiles.prepares_keys()) add(to->dk, key, view.keys, view.key_width);
}

struct Replayed {                          // instead of the weights that were read with
  bool dropped = false, expected = false;  // AskedWeights
  bool scores = false;                     // what they are made of
};

// The weights of the wanted queries of a block, made again: `out` is [wanted, keys] of its item and head.
template <class T>
void replay_block(const View<T>& view, const PreparedKeys<T>& keys, std::int64_t slot, Plan::Block block,
                  std::int64_t head, Range wanted, const Replayed& replayed, const Buffers<T>& buffers, T* out) {
  block.queries = {std::max(block.queries.begin, wanted.begin), std::min(block.queries.end, wanted.end)};
  if (block.queries.count() == 0) return;
  const BlockWork<T> work(view, keys, slot, block, head);
  const RowsOf<T> q = buffers.queries(buffers.q, work.rows(), view.width);
  view.tiles.prepare_queries(view.call.sizes, work.query_rows(), q);
  const std::int64_t first = view.row(block.item, head, block.queries.begin);
  work.for_each_tile(false, [&](const Place& whole, std::int64_t tile_number, Cover whole_cover) {
    work.for_each_part(
        whole, tile_number, whole_cover, kQueryPart, kMostQueries, [&](const Place& part, std::int64_t t, Cover cover) {
          const std::int64_t row = part.queries.begin - block.queries.begin;
          const RowsOf<T> s{buffers.s, size(part.queries.count()), size(part.keys.count()), size(buffers.stride)};
          work.score(part, t, cover, rows_from(q, row, s.count), s, nullptr, replayed.scores);
          if (!replayed.scores) {
            view.stages.align->weigh(s, view.call.peaks.template data<T>() + first + row,
                                     view.call.taus.template data<T>() + first + row);
            if (view.choices != nullptr && !replayed.expected) work.read_chosen(part, s);
            work.gate(part, s);
            if (replayed.dropped) work.drop(part, s);
          }
          for (std::size_t i = 0; i < s.count; ++i) {
            const std::int64_t to = part.queries.begin - wanted.begin + static_cast<std::int64_t>(i);
            std::copy_n(s.row(i), s.width, out + to * view.keys + part.keys.begin);
          }
        });
  });
}

// Heads are handled one after another by whoever prepares their keys, if there are enough of them; otherwise as many as
// there are threads are prepared at once and their blocks shared out. Either way only so many are held in panels.
template <class T>
void forward_all(const View<T>& view, const Plan& plan, Arena& arena, T* context, T* peaks, T* taus, T* weights) {
  const std::int64_t units = view.units(), lists = view.batch * units, sharing = view.unit_heads();
  const Arena::Scope temporary(arena);
  const ForwardRoom<T> room(view, plan, arena);
  const std::int64_t workers = room.workers, slots = room.slots;
  const PreparedKeys<T>& keys = room.keys;
  const Packed<T>& values = room.values;
  const auto prepare = [&](std::int64_t list, std::int64_t slot) {
    keys.prepare(view, plan, slot, list / units, list % units);
    prepare_values(view, plan, values, slot, list / units, list % units);
  };
  const auto run = [&](std::int64_t slot, const Plan::Block& block, std::int64_t head, int worker, Ahead* ahead) {
    Buffers<T> mine = room.buffers;
    mine.ahead = ahead;
    mine.use(room.memory + worker * mine.total);
    const bool pointer = view.stages.read->is_pointer();
    T* const kept = weights == nullptr ? nullptr : weights + view.row(block.item, head, 0) * view.keys;
    const BlockWork<T> work(view, keys, slot, block, head);
    if (counts_flops()) {
      const double read = pointer ? 0 : 2 * static_cast<double>(view.value_width);
      count_flops(work.seen_pairs() * (score_flops(view.stages, view.width) + read));
    }
    if (!view.call.staged || pointer) {
      forward_block(work, values, mine, context, peaks, taus, kept);
    } else {
      staged_forward_block(work, values, mine, context, peaks, taus);
      if (kept != nullptr) replay_block(view, keys, slot, block, head, {0, view.queries}, {}, mine, kept);
    }
    // A tile of weights 0 may be skipped or added: a −0 that faded away becomes 0 by adding 0. So it always does, here
    // and in the gradients.
    const std::int64_t width = pointer ? view.keys : view.value_width;
    plain_zeros(RowsOf<T>{context + view.row(block.item, head, block.queries.begin) * width,
                          size(block.queries.count()), size(width), size(width)});
  };
  if (lists >= 8 * workers) {
    parallel(size(lists), [&](std::size_t index, int worker) {
      const auto list = static_cast<std::int64_t>(index);
      const std::int64_t item = list / units, group = list % units;
      prepare(list, worker);
      Ahead ahead;
      fetch_unit<T>(view, list + workers, context, nullptr, nullptr, ahead);
      for (std::int64_t b = plan.first_block[item]; b < plan.first_block[item + 1]; ++b) {
        for (std::int64_t head = group * sharing; head < (group + 1) * sharing; ++head) {
          run(worker, plan.blocks[b], head, worker, &ahead);
        }
      }
    });
    return;
  }
  for (std::int64_t begin = 0; begin < lists; begin += slots) {
    const std::int64_t end = std::min(begin + slots, lists);
    parallel(size(end - begin), [&](std::size_t slot) {
      prepare(begin + static_cast<std::int64_t>(slot), static_cast<std::int64_t>(slot));
    });
    std::int64_t total = 0;
    for (std::int64_t list = begin; list < end; ++list) {
      const std::int64_t item = list / units;
      total += (plan.first_block[item + 1] - plan.first_block[item]) * sharing;
    }
    parallel(size(total), [&](std::size_t index, int worker) {
      auto rest = static_cast<std::int64_t>(index);
      for (std::int64_t list = begin; list < end; ++list) {
        const std::int64_t item = list / units, group = list % units;
        const std::int64_t count = (plan.first_block[item + 1] - plan.first_block[item]) * sharing;
        if (rest < count) {
          return run(list - begin, plan.blocks[plan.first_block[item] + rest / sharing],
                     group * sharing + rest % sharing, worker, nullptr);
        }
        rest -= count;
      }
    });
  }
}

// All queries of a unit, in order.
template <class T>
void backward_unit(const View<T>& view, const Plan& plan, const PreparedKeys<T>& keys, const Packed<T>& values,
                   Buffers<T> at, std::int64_t slot, std::int64_t item, std::int64_t unit, const T* context,
                   const T* dy, const T* peaks, const T* taus, const Outlets<T>& to) {
  // Heads that share values add to them block by block: who goes stage by stage does so, too.
  const bool streams = view.stages.align->streams() && !view.stages.read->is_pointer();
  const std::int64_t sharing = view.unit_heads(), step = streams ? kBackTile : kQueryTile;
  keys.prepare(view, plan, slot, item, unit);
  prepare_values(view, plan, values, slot, item, unit);
  for (std::int64_t s = plan.first_segment[item]; s < plan.first_segment[item + 1]; ++s) {
    const Segment& segment = plan.segments[s];
    for (std::int64_t i = segment.queries.begin; i < segment.queries.end; i += step) {
      const Plan::Block block{item, &segment, {i, std::min(i + step, segment.queries.end)}};
      for (std::int64_t head = unit * sharing; head < (unit + 1) * sharing; ++head) {
        backward_block(BlockWork<T>(view, keys, slot, block, head), values, at, context, dy, peaks, taus, to);
      }
    }
  }
}

}  // namespace

Attention attend_lowered(const Mechanism& mechanism, const Inputs& in, const Lowered& made, Var v,
                         const AttendOptions& options) {
  const FloatMode mode;
  const Stages& stages = mechanism.stages();
  Tape& tape = *in.tape;
  Arena& arena = tape.arena();
  const DType type = in.type;
  const auto value_of = [](Var x) { return x.defined() ? x.value() : Tensor(); };
  AttendCall call;
  call.mechanism = mechanism;
  call.sizes = in.sizes;
  call.batch = in.batch;
  call.queries = in.queries;
  call.keys = in.keys;
  call.q = made.q.value();
  call.k = made.k.value();
  call.theta = value_of(made.theta);
  call.table = value_of(made.table);
  call.centres = value_of(made.centres);
  call.bias = value_of(made.bias);
  const auto copy = [&](const Tensor& from) {
    const Tensor to = tape.make(from.shape(), from.dtype());
    to.copy_from(from);
    return to;
  };
  if (!options.lengths.empty()) {
    call.lengths = tape.make({in.batch}, DType::kI32);
    std::copy(options.lengths.begin(), options.lengths.end(), call.lengths.data<std::int32_t>());
  }
  if (options.documents.defined()) call.documents = copy(options.documents);
  if (options.mask.defined()) call.mask = copy(options.mask);
  if (options.edits != nullptr) edit_call(*options.edits, tape, type, call);
  call.draws = options.draws;
  call.entropy = options.entropy;
  make_state(call, type, tape);
  for (std::int64_t item = 0; item < in.batch; ++item) {
    const std::uint64_t id = options.ids.empty() ? static_cast<std::uint64_t>(item) : options.ids[size(item)];
    std::memcpy(call.ids.data<std::int32_t>() + 2 * item, &id, sizeof(id));
  }
  call.offset = in.offset;
  call.dropout = options.dropout;
  call.key = options.key;
  call.staged = options.staged;
  if (options.weights) {
    call.weights = tape.make(map_shape(call), type);
    std::memset(call.weights.raw(), 0, call.weights.bytes());
  }
  if (call.choices.defined()) std::fill_n(call.choices.data<std::int32_t>(), call.choices.size(), -1);
  if (call.advantage.defined()) std::memset(call.advantage.raw(), 0, call.advantage.bytes());
  const bool pointer = stages.read->is_pointer();
  const Tensor values = pointer ? Tensor() : v.value();
  const Tensor context = tape.make({in.batch, in.sizes.heads, in.queries, pointer ? in.keys : v[3]}, type);
  const Var inputs[] = {made.q, made.k, pointer ? Var() : v, made.theta, made.table, made.centres, made.bias};
  const bool learns =
      std::any_of(std::begin(inputs), std::end(inputs), [](Var x) { return x.defined() && x.needs_gradient(); });

  return by_type(type, [&]<class T>() -> Attention {
    const Plan plan = make_plan(View<T>(call, values), arena);
    Held<T> held;
    if (learns && holds_scores(call)) held.scores = allocate<T>(arena, map_shape(call).size());
    if (learns && holds_kept(call, plan)) {
      held.kept = allocate<std::uint8_t>(arena, in.batch * in.sizes.heads * in.queries * kept_bytes(plan));
    }
    const View<T> view(call, values, held);
    if (call.documents.defined()) {  // positions of no document are in no block
      for (const Tensor& x : {context, call.peaks, call.taus}) std::memset(x.raw(), 0, x.bytes());
    }
    forward_all(view, plan, arena, context.data<T>(), call.peaks.data<T>(), call.taus.data<T>(),
                call.weights.defined() ? call.weights.data<T>() : nullptr);
    if (call.weights.defined()) replace_all_weights(call, call.weights);

    const Var result = tape.record(Op::attend, context, inputs, [=, &tape](const Tensor& dy) {
      const View<T> again(call, values, held.known());
      const auto gradient_of = [&](Var x) {
        const Target to = tape.target(x);
        return to ? to : Target{tape.make(x.shape(), type), false};
      };
      const auto zeros = [&](const Shape& shape) {
        const Tensor x = tape.make(shape, type);
        std::memset(x.raw(), 0, x.bytes());
        return x;
      };
      const auto wanted = [&](Var x) {
        if (!x.defined() || !x.needs_gradient()) return Tensor();
        const Target to = gradient_of(x);
        if (!to.add) std::memset(to.gradient.raw(), 0, to.gradient.bytes());
        return to.gradient;
      };
      const auto data_of = [](const Tensor& x) { return x.defined() ? x.data<T>() : nullptr; };
      // What is not added to starts at 0: dk and dv when their turn comes, and dq with its rows, of which documents may
      // leave some out.
      Target dq = gradient_of(made.q), dk = gradient_of(made.k);
      const Target dv = pointer ? Target{} : gradient_of(v);
      // One variable may be several of them: then it is cleared now, and all are added.
      const auto shared = [](const Target& a, const Target& b) {
        return a.gradient.defined() && b.gradient.defined() && a.gradient.raw() == b.gradient.raw();
      };
      for (Target* each : {&dq, &dk}) {
        if (each->add || !(shared(*each, dv) || (each == &dq && shared(dq, dk)))) continue;
        std::memset(each->gradient.raw(), 0, each->gradient.bytes());
        each->add = true;
      }
      if (!dq.add && call.documents.defined()) std::memset(dq.gradient.raw(), 0, dq.gradient.bytes());
      if (again.batch == 0) {  // nobody's turn comes, but what all items share is there
        for (const Target& each : {dq, dk}) {
          if (!each.add) std::memset(each.gradient.raw(), 0, each.gradient.bytes());
        }
      }
      const Tensor d_bias = wanted(made.bias), d_centres = wanted(made.centres);
      const auto each_item = [&](Var x) { return x.defined() ? zeros(part_shape(call, x.value())) : Tensor(); };
      const Tensor d_theta = each_item(made.theta), d_table = each_item(made.table);
      const bool prepares = again.tiles.prepares_keys();
      const BackwardRoom<T> room(again, plan, d_bias.defined(), tape.arena());
      const std::int64_t key_numbers = room.key_numbers, value_numbers = room.value_numbers;
      parallel(size(room.pieces), [&](std::size_t piece, int worker) {
        const std::int64_t item_piece = static_cast<std::int64_t>(piece) / room.unit_pieces;
        const std::int64_t unit_piece = static_cast<std::int64_t>(piece) % room.unit_pieces;
        Buffers<T> mine = room.buffers;
        mine.use(room.memory + worker * mine.total);
        const Range items = room.all_items ? Range{0, again.batch} : Range{item_piece, item_piece + 1};
        const Range units = room.all_heads ? Range{0, again.units()} : Range{unit_piece, unit_piece + 1};
        for (std::int64_t unit = units.begin; unit < units.end; ++unit) {
          for (std::int64_t item = items.begin; item < items.end; ++item) {
            const std::int64_t key_at =
                ((again.shares_keys ? 0 : item) * again.units() + unit) * key_numbers;  // of the unit's numbers
            const std::int64_t value_at = (item * again.units() + unit) * value_numbers;
            const auto as_rows = [](T* from, std::int64_t numbers) {
              return RowsOf<T>{from, 1, size(numbers), size(numbers)};
            };
            const RowsOf<T> own_dk = as_rows(dk.gradient.data<T>() + key_at, key_numbers);
            const bool first = !again.shares_keys || item == items.begin;
            const bool last = !again.shares_keys || item + 1 == items.end;
            if (!dk.add && first) clear(own_dk);
            const RowsOf<T> own_dv = pointer ? RowsOf<T>{} : as_rows(dv.gradient.data<T>() + value_at, value_numbers);
            if (!pointer && !dv.add) clear(own_dv);
            // Gradients of prepared keys stand in the worker's own memory, where those of the unit would be.
            const RowsOf<T> own =
                as_rows(prepares ? room.d_prepared + worker * key_numbers : nullptr, prepares ? key_numbers : 0);
            if (prepares && first) clear(own);
            const auto of_item = [&](const Tensor& x) {
              return x.defined() ? x.data<T>() + item * again.heads * x[2] : nullptr;
            };
            const Outlets<T> to{dq.gradient.data<T>(),
                                prepares ? own.data - key_at : dk.gradient.data<T>(),
                                pointer ? nullptr : dv.gradient.data<T>(),
                                dq.add || (again.shares_queries && item > items.begin),
                                of_item(d_theta),
                                of_item(d_table),
                                data_of(d_bias),
                                data_of(d_centres)};
            Ahead ahead;
            fetch_unit<T>(again, item * again.units() + unit + room.slots, context.data<T>(), dy.data<T>(), &to, ahead);
            mine.ahead = &ahead;
            backward_unit(again, plan, room.keys, room.values, mine, worker, item, unit, context.data<T>(),
                          dy.data<T>(), call.peaks.data<T>(), call.taus.data<T>(), to);
            if (!pointer) plain_zeros(own_dv);
            if (!last) continue;  // others use these keys, too
            plain_zeros(prepares ? own : own_dk);
            if (!prepares) continue;
            const std::size_t count = size(again.unit_keys() * again.keys), width = size(again.key_width);
            again.tiles.finish_keys(call.sizes, RowsOf<const T>{again.k + key_at, count, width, width},
                                    RowsOf<const T>{own.data, count, width, width},
                                    RowsOf<T>{own_dk.data, count, width, width});
          }
        }
      });
      for (const auto& [parts, whole] : {std::pair(d_theta, made.theta), std::pair(d_table, made.table)}) {
        if (!whole.defined()) continue;
        plain_zeros(RowsOf<T>{parts.template data<T>(), 1, size(parts.size()), size(parts.size())});
        if (const Target to = tape.target(whole)) sum_to<T>(parts, to);
      }
    });
    const Var edited =
        options.edits == nullptr ? result : edit_context(*options.edits, call, result, pointer ? Var() : v, made.table);
    return {edited, AttendTrace(call)};
  });
}

EngineRoom engine_room(AttendCall call, const Tensor& values, bool bias_learns) {
  return by_type(call.q.dtype(), [&]<class T>() -> EngineRoom {
    CountedMemory forward, backward;
    make_state(call, call.q.dtype(), forward);
    const bool holds = holds_scores(call);
    if (holds) forward.make(map_shape(call), call.q.dtype());
    const View<T> view(call, values), again(call, values, {.knows_scores = holds});
    Arena arena;
    const Plan plan = make_plan(view, arena);
    const ForwardRoom<T> there(view, plan, forward);
    const BackwardRoom<T> back(again, plan, bias_learns, backward);
    for (const Tensor& x : {call.theta, call.table}) {
      if (x.defined()) backward.make(part_shape(call, x), call.q.dtype());
    }
    const auto bytes = [](std::int64_t count) { return size(count) * sizeof(T); };
    return {.forward = arena.used() + forward.used,
            .backward = backward.used,
            .whole_rows = there.buffers.whole,
            .row_bytes = bytes(there.buffers.score_size),
            .holds_scores = holds,
            .pieces = back.pieces,
            .unit_rows = view.queries * view.unit_heads()};
  });
}

Tensor AttendTrace::weights(const AskedWeights& asked) const {
  const Tensor result = map(asked, false);
  replace_weights(call_, asked.item, asked.head, asked.queries.value_or(Range{0, call_.queries}), result);
  return result;
}

Tensor AttendTrace::scores(const AskedWeights& asked) const { return map(asked, true); }

Tensor AttendTrace::map(const AskedWeights& asked, bool scores) const {
  check(call_.mechanism.has_value(), "weights of a trace that holds nothing");
  check(asked.item >= 0 && asked.item < call_.batch, "weights: item ", asked.item, ", expected 0 to ", call_.batch - 1);
  check(asked.head >= 0 && asked.head < call_.sizes.heads, "weights: head ", asked.head, ", expected 0 to ",
        call_.sizes.heads - 1);
  const Range wanted = asked.queries.value_or(Range{0, call_.queries});
  check(wanted.begin >= 0 && wanted.begin <= wanted.end && wanted.end <= call_.queries, "weights: queries ",
        wanted.begin, " to ", wanted.end, ", expected within 0 to ", call_.queries);
  const FloatMode mode;
  const Tensor result = Tensor::zeros({wanted.count(), call_.keys}, call_.q.dtype());
  by_type(result.dtype(), [&]<class T>() {
    if (scores) std::fill_n(result.data<T>(), result.size(), kHidden<T>);
    const View<T> view(call_, {});
    Arena arena;
    const Plan plan = make_plan(view, arena);
    const PreparedKeys<T> keys(view, plan, 1, false, arena);
    keys.prepare(view, plan, 0, asked.item, asked.head / std::max<std::int64_t>(1, view.unit_heads()));
    const Buffers<T> all_buffers(view, plan, false);
    T* const memory = allocate<T>(arena, threads() * all_buffers.total);
    const std::int64_t first_block = plan.first_block[asked.item];
    parallel(size(plan.first_block[asked.item + 1] - first_block), [&](std::size_t index, int worker) {
      Buffers<T> buffers = all_buffers;
      buffers.use(memory + worker * buffers.total);
      replay_block(view, keys, 0, plan.blocks[first_block + static_cast<std::int64_t>(index)], asked.head, wanted,
                   {asked.dropped, asked.expected, scores}, buffers, result.data<T>());
    });
  });
  return result;
}

Tensor AttendTrace::all_weights() const {
  check(call_.mechanism.has_value(), "weights of a trace that holds nothing");
  if (call_.weights.defined()) return call_.weights;
  const FloatMode mode;
  const std::int64_t heads = call_.sizes.heads, map = call_.queries * call_.keys;
  const Tensor result = Tensor::zeros({call_.batch, heads, call_.queries, call_.keys}, call_.q.dtype());
  by_type(result.dtype(), [&]<class T>() {
    const View<T> view(call_, {});
    Arena arena;
    const Plan plan = make_plan(view, arena);
    const PreparedKeys<T> keys(view, plan, threads(), false, arena);
    const Buffers<T> all_buffers(view, plan, false);
    T* const memory = allocate<T>(arena, threads() * all_buffers.total);
    const std::int64_t units = view.units(), sharing = view.unit_heads();
    parallel(size(call_.batch * units), [&](std::size_t index, int worker) {
      const std::int64_t item = static_cast<std::int64_t>(index) / units;
      const std::int64_t unit = static_cast<std::int64_t>(index) % units;
      Buffers<T> buffers = all_buffers;
      buffers.use(memory + worker * buffers.total);
      keys.prepare(view, plan, worker, item, unit);
      for (std::int64_t b = plan.first_block[item]; b < plan.first_block[item + 1]; ++b) {
        for (std::int64_t head = unit * sharing; head < (unit + 1) * sharing; ++head) {
          replay_block(view, keys, worker, plan.blocks[b], head, {0, call_.queries}, {}, buffers,
                       result.data<T>() + (item * heads + head) * map);
        }
      }
    });
  });
  replace_all_weights(call_, result);
  return result;
}

AttendTrace AttendTrace::keep() const {
  AttendCall kept = call_;
  for (Tensor* x : {&kept.q, &kept.k, &kept.theta, &kept.table, &kept.centres, &kept.bias, &kept.lengths,
                    &kept.documents, &kept.mask, &kept.ids, &kept.peaks, &kept.taus, &kept.choices, &kept.advantage,
                    &kept.replaced, &kept.replaced_by, &kept.weights}) {
    if (x->defined()) *x = x->clone();
  }
  return AttendTrace(std::move(kept));
}

}  // namespace regard
