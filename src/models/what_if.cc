#include "models/what_if.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"

namespace regard {

std::string_view name_of(LookKind kind) {
  switch (kind) {
    case LookKind::kCross:
      return "cross";
    case LookKind::kEncoder:
      return "encoder";
    case LookKind::kDecoder:
      return "decoder";
  }
  return "";
}

std::optional<Edits> edits_of(const WhatIf* what_if, const LookPlace& place) {
  if (what_if == nullptr) return {};
  Edits made;
  for (const WhatIf::Head& each : what_if->muted) {
    if (each.kind != place.kind || each.layer != place.layer) continue;
    check(each.head >= 0 && each.head < place.heads, "what if: head ", each.head, ", expected 0 to ", place.heads - 1);
    made.head_scale.resize(static_cast<std::size_t>(place.heads), 1.0f);
    made.head_scale[static_cast<std::size_t>(each.head)] = 0;
  }
  if (place.kind != LookKind::kDecoder && !what_if->hidden.empty()) {
    made.hidden = Tensor::zeros({1, 1, place.queries, place.keys}, DType::kI8);
    for (const std::int64_t key : what_if->hidden) {
      check(key >= 0 && key < place.keys, "what if: token ", key, " of the source, expected 0 to ", place.keys - 1);
      for (std::int64_t query = 0; query < place.queries; ++query) {
        made.hidden.data<std::int8_t>()[query * place.keys + key] = 1;
      }
    }
  }
  std::map<std::int64_t, const WhatIf::Row*> by_head;
  for (const WhatIf::Row& row : what_if->rows) {
    if (place.kind != LookKind::kCross || row.step != place.step) continue;
    if (row.layer >= 0 && row.layer != place.layer) continue;
    for (std::int64_t head = 0; head < place.heads; ++head) {
      if (row.head < 0 || row.head == head) by_head[head] = &row;
    }
  }
  for (const auto& [head, row] : by_head) {
    for (std::int64_t query = 0; query < place.queries; ++query) {
      made.rows.push_back({.item = 0, .head = head, .query = query, .weights = row->weights});
    }
  }
  if (made.head_scale.empty() && !made.hidden.defined() && made.rows.empty()) return {};
  return made;
}

WhatIf part_of(const WhatIf& what_if, std::int64_t first, std::int64_t layers) {
  WhatIf made{.muted = {}, .hidden = what_if.hidden, .rows = {}};
  const auto own = [&](std::int64_t layer) { return layer >= first && layer < first + layers; };
  for (WhatIf::Head each : what_if.muted) {
    if (each.kind == LookKind::kCross ? !own(each.layer) : first > 0) continue;
    if (each.kind == LookKind::kCross) each.layer -= first;
    made.muted.push_back(each);
  }
  for (WhatIf::Row each : what_if.rows) {
    if (each.layer >= 0 && !own(each.layer)) continue;
    if (each.layer >= 0) each.layer -= first;
    made.rows.push_back(std::move(each));
  }
  return made;
}

}  // namespace regard
