#include "attention/edits.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>

#include "autograd/by_type.h"
#include "autograd/kernel_calls.h"
#include "base/check.h"

namespace regard {
namespace {

// One replaced row, as reading and its gradient see it.
template <class T>
struct Row {
  Row(const AttendCall& call, std::int64_t number) : weights(call.replaced_by.data<T>() + number * call.keys) {
    const std::int32_t* const at = call.replaced.data<std::int32_t>() + number * 3;
    place.item = at[0];
    place.head = at[1];
    place.sizes = &call.sizes;
    place.queries = {at[2], at[2] + 1};
    place.keys = place.sequence = {0, call.keys};
    place.offset = call.offset;
    place.wide = std::is_same_v<T, double>;
    context = (place.item * call.sizes.heads + place.head) * call.queries + at[2];
  }
  RowsOf<const T> all() const { return row_of(weights, place.keys.count()); }
  static RowsOf<const T> row_of(const T* at, std::int64_t width) {
    return {at, 1, static_cast<std::size_t>(width), static_cast<std::size_t>(width)};
  }
  static RowsOf<T> row_of(T* at, std::int64_t width) {
    return {at, 1, static_cast<std::size_t>(width), static_cast<std::size_t>(width)};
  }
  // The values of its head, or their gradient.
  RowsOf<T> values(const Tensor& v) const {
    const std::int64_t list = place.item * v[1] + place.head / (place.sizes->heads / v[1]);
    return {v.data<T>() + list * v[2] * v[3], static_cast<std::size_t>(v[2]), static_cast<std::size_t>(v[3]),
            static_cast<std::size_t>(v[3])};
  }
  T* table(const Tensor& x) const { return x.data<T>() + (x[0] == 1 ? 0 : place.head) * x[1]; }

  Place place;
  const T* weights;
  std::int64_t context;  // the number of its row
};

template <class T>
void read(const Row<T>& row, const Read& how, const Tensor& v, const Tensor& table, RowsOf<T> to) {
  if (!v.defined()) {
    std::copy_n(row.weights, to.width, to.data);
  } else {
    const RowsOf<T> values = row.values(v);
    selected_product(as_matrix(row.all()), RowsOf<const T>(values), false, to, true);
    if (table.defined()) how.forward(row.place, row.all(), row.table(table), to);
  }
  plain_zeros(to);
}

template <class T>
Var replace_rows(const AttendCall& call, Var context, Var v, Var table) {
  Tape& tape = context.tape();
  const std::int64_t count = call.replaced[0], width = context[3];
  const Tensor value = tape.make(context.shape(), context.dtype());
  value.copy_from(context.value());
  const auto value_of = [](Var x) { return x.defined() ? x.value() : Tensor(); };
  for (std::int64_t i = 0; i < count; ++i) {
    const Row<T> row(call, i);
    read(row, *call.mechanism->stages().read, value_of(v), value_of(table),
         Row<T>::row_of(value.data<T>() + row.context * width, width));
  }
  return tape.record(Op::attend, value, {context, v, table}, [=, &tape](const Tensor& dy) {
    const auto target = [&](Var x) {  // to be added to
      const Target to = x.defined() ? tape.target(x) : Target{};
      if (to && !to.add) std::memset(to.gradient.raw(), 0, to.gradient.bytes());
      return to;
    };
    if (const Target to = tape.target(context)) {
      const Tensor others = tape.make(dy.shape(), dy.dtype());
      others.copy_from(dy);
      for (std::int64_t i = 0; i < count; ++i) {
        std::fill_n(others.data<T>() + Row<T>(call, i).context * width, width, T(0));
      }
      add_into(others.data<T>(), to.gradient.data<T>(), static_cast<std::size_t>(others.size()), to.add);
    }
    const Target dv = target(v), d_table = target(table);
    for (std::int64_t i = 0; i < count; ++i) {
      const Row<T> row(call, i);
      const RowsOf<const T> given = Row<T>::row_of(static_cast<const T*>(dy.data<T>()) + row.context * width, width);
      if (dv) selected_product(as_matrix(row.all()).transposed(), given, false, row.values(dv.gradient));
      if (d_table) {
        call.mechanism->stages().read->table_gradient(row.place, row.all(), given, row.table(d_table.gradient));
      }
    }
    if (dv) plain_zeros(Row<T>::row_of(dv.gradient.data<T>(), dv.gradient.size()));
  });
}

}  // namespace

void check_edits(const Edits& edits, const Shape& all) {
  const Tensor& hidden = edits.hidden;
  if (hidden.defined()) {
    check(hidden.dtype() == DType::kI8 && hidden.rank() == 4 && broadcast(hidden.shape(), all, "attend: hidden") == all,
          "attend: what edits hide is ", hidden, ", expected i8, spread to ", all);
  }
  check(edits.head_scale.empty() || static_cast<std::int64_t>(edits.head_scale.size()) == all[1], "attend: edits have ",
        edits.head_scale.size(), " scales for ", all[1], " heads");
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> seen;
  for (std::size_t i = 0; i < edits.rows.size(); ++i) {
    const ReplacedRow& row = edits.rows[i];
    const auto within = [](std::int64_t x, std::int64_t count) { return x >= 0 && x < count; };
    check(within(row.item, all[0]) && within(row.head, all[1]) && within(row.query, all[2]), "attend: row ", i,
          " of the edits is item ", row.item, ", head ", row.head, ", query ", row.query, ", expected below ", all[0],
          ", ", all[1], ", ", all[2]);
    check(static_cast<std::int64_t>(row.weights.size()) == all[3], "attend: row ", i, " of the edits has ",
          row.weights.size(), " weights for ", all[3], " keys");
    check(seen.emplace(row.item, row.head, row.query).second, "attend: row ", i, " of the edits, item ", row.item,
          ", head ", row.head, ", query ", row.query, ", is replaced twice");
  }
}

void edit_call(const Edits& edits, Tape& tape, DType type, AttendCall& call) {
  const std::int64_t count = static_cast<std::int64_t>(edits.rows.size());
  if (count > 0) {
    call.replaced = tape.make({count, 3}, DType::kI32);
    call.replaced_by = tape.make({count, call.keys}, type);
  }
  by_type(type, [&]<class T>() {
    for (std::int64_t i = 0; i < count; ++i) {
      const ReplacedRow& row = edits.rows[static_cast<std::size_t>(i)];
      const std::int64_t at[] = {row.item, row.head, row.query};
      for (int j = 0; j < 3; ++j) call.replaced.data<std::int32_t>()[i * 3 + j] = static_cast<std::int32_t>(at[j]);
      std::copy(row.weights.begin(), row.weights.end(), call.replaced_by.data<T>() + i * call.keys);
    }
  });
  if (count == 0 && !edits.hidden.defined()) return;
  const auto most = [&](int dimension, std::int64_t whole) {  // 1 if it is so for all that say something
    std::int64_t size = count > 0 ? whole : 1;
    if (call.mask.defined() && call.mask[dimension] != 1) size = whole;
    if (edits.hidden.defined() && edits.hidden[dimension] != 1) size = whole;
    return size;
  };
  const Shape shape = {most(0, call.batch), most(1, call.sizes.heads), call.queries, call.keys};
  const Tensor seen = tape.make(shape, DType::kI8);
  std::int8_t* const to = seen.data<std::int8_t>();
  if (call.mask.defined()) {
    seen.copy_from(call.mask.expand(shape));
  } else {
    std::fill_n(to, seen.size(), std::int8_t{1});
  }
  if (edits.hidden.defined()) {
    const Tensor hidden = edits.hidden.expand(shape).clone();
    for (std::int64_t i = 0; i < seen.size(); ++i) to[i] = hidden.data<std::int8_t>()[i] == 0 ? to[i] : std::int8_t{0};
  }
  for (const ReplacedRow& row : edits.rows) {
    const std::int64_t at = (row.item * shape[1] + row.head) * call.queries + row.query;
    std::fill_n(to + at * call.keys, call.keys, std::int8_t{0});
  }
  call.mask = seen;
}

Var edit_context(const Edits& edits, const AttendCall& call, Var context, Var v, Var table) {
  Var made = context;
  if (call.replaced.defined()) {
    made = by_type(context.dtype(), [&]<class T>() { return replace_rows<T>(call, context, v, table); });
  }
  if (edits.head_scale.empty()) return made;
  Tape& tape = context.tape();
  const Tensor scale = tape.make({1, call.sizes.heads, 1, 1}, context.dtype());
  by_type(context.dtype(),
          [&]<class T>() { std::copy(edits.head_scale.begin(), edits.head_scale.end(), scale.data<T>()); });
  return made * tape.constant(scale);
}

void replace_weights(const AttendCall& call, std::int64_t item, std::int64_t head, Range wanted,
                     const Tensor& weights) {
  if (!call.replaced.defined()) return;
  by_type(weights.dtype(), [&]<class T>() {
    for (std::int64_t i = 0; i < call.replaced[0]; ++i) {
      const Row<T> row(call, i);
      const std::int64_t query = row.place.queries.begin;
      if (row.place.item != item || row.place.head != head || query < wanted.begin || query >= wanted.end) continue;
      std::copy_n(row.weights, call.keys, weights.data<T>() + (query - wanted.begin) * call.keys);
    }
  });
}

void replace_all_weights(const AttendCall& call, const Tensor& weights) {
  if (!call.replaced.defined()) return;
  by_type(weights.dtype(), [&]<class T>() {
    for (std::int64_t i = 0; i < call.replaced[0]; ++i) {
      const Row<T> row(call, i);
      std::copy_n(row.weights, call.keys, weights.data<T>() + row.context * call.keys);
    }
  });
}

}  // namespace regard
