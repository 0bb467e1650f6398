#include "serve/edit.h"

#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "io/json.h"
#include "serve/answers.h"
#include "tasks/traces.h"

namespace regard::serve {
namespace {

constexpr std::int64_t kMapsAtOnce = 16;  // times as many weights are computed as are told

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  throw Refusal(400, text(parts...));
}

void check_place(std::string_view field, std::int64_t at, std::int64_t count) {
  if (at >= count) refuse(field, ": ", at, ", expected 0 to ", count - 1);
}

// Pieces as traces show them, back to ids.
std::vector<std::int32_t> ids_of_pieces(const Tokenizer& tokenizer, const std::vector<std::string>& pieces) {
  std::vector<std::int32_t> ids;
  if (pieces.empty()) return ids;
  std::unordered_map<std::string, std::int32_t> known;
  for (std::int64_t id = tokenizer.size() - 1; id >= 0; --id) {
    known[tokenizer.piece(static_cast<std::int32_t>(id))] = static_cast<std::int32_t>(id);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto found = known.find(pieces[i]);
    if (found == known.end() || found->second == tokenizer.special().end) {
      refuse("prefix[", i, "]: ", json_quote(pieces[i]), " is no piece of this model");
    }
    ids.push_back(found->second);
  }
  return ids;
}

WhatIf what_if_of(const SequenceModel& model, const EditRequest& request, std::int64_t source) {
  WhatIf made;
  for (const WhatIf::Head& each : request.muted) {
    const AttentionShape shape = model.shape_of(each.kind);
    if (shape.layers == 0) refuse("mute: this model has no map ", name_of(each.kind));
    check_place("mute.layer", each.layer, shape.layers);
    check_place("mute.head", each.head, shape.heads);
    made.muted.push_back(each);
  }
  for (const std::int64_t each : request.hidden) {
    check_place("hide", each, source + 1);
    made.hidden.push_back(each);
  }
  const AttentionShape shape = model.attention_shape();
  if (shape.layers == 0 && !(request.hidden.empty() && request.pins.empty())) {
    refuse("this model has no attention: there is nothing to hide or to pin");
  }
  for (const EditRequest::Pin& each : request.pins) {
    WhatIf::Row row{.step = each.target, .layer = each.layer, .head = each.head, .weights = each.weights};
    check_place("pin.layer", each.layer, shape.layers);
    check_place("pin.head", each.head, shape.heads);
    if (each.weights.empty()) {
      check_place("pin.source", each.source, source + 1);
      row.weights.assign(static_cast<std::size_t>(source) + 1, 0.0f);
      row.weights[static_cast<std::size_t>(each.source)] = 1;
    } else if (each.weights.size() != static_cast<std::size_t>(source) + 1) {
      refuse("pin.weights: ", each.weights.size(), " of them, expected ", source + 1,
             ": one a token and one of the end");
    }
    made.rows.push_back(std::move(row));
  }
  return made;
}

void write_side(JsonWriter& out, std::string_view name, const Translator& translator,
                const Translator::Result& result) {
  out.key(name).begin_object().key("translatedText").value(result.text);
  out.key("log_probability").value(result.log_probability).key("tokens").begin_array();
  for (const Token& each : result.tokens) out.value(translator.target().piece(each.id));
  out.end_array().end_object();
}

}  // namespace

void check_weights(const Translator& translator, std::string_view line, bool everything, const Limits& limits) {
  const SequenceModel& model = translator.model();
  const auto tokens = static_cast<double>(translator.source().ids(line).size() + 1);
  double maps = 0;
  for (const LookKind kind : {LookKind::kCross, LookKind::kEncoder, LookKind::kDecoder}) {
    const AttentionShape shape = model.shape_of(kind);
    if (everything || kind == LookKind::kCross) maps += static_cast<double>(shape.layers * shape.heads);
  }
  if (maps * tokens * tokens > static_cast<double>(kMapsAtOnce * limits.weights)) {
    throw Refusal(413, text("q: a line of ", tokens - 1, " tokens has too many weights to be told: ask without"));
  }
}

Edited edit(const Model& model, const EditRequest& request, const Limits& limits, const Context& context) {
  const Translator& translator = model.translator;
  const auto source = static_cast<std::int64_t>(translator.source().ids(request.text).size());
  if (source == 0) refuse("q: there is nothing to translate");
  if (source > model.longest) {
    throw Refusal(413, text("q: a line of ", source, " tokens, expected at most ", model.longest));
  }
  const Keeps keeps = request.trace ? Keeps::kEverything : request.attention ? Keeps::kSource : Keeps::kNothing;
  if (keeps != Keeps::kNothing) check_weights(translator, request.text, keeps == Keeps::kEverything, limits);
  const WhatIf what_if = what_if_of(translator.model(), request, source);
  const std::int64_t best = request.alternatives + 1;
  TranslateSettings settings{.beam = std::max(request.beam, best), .best = best};
  settings.keeps = keeps;
  settings.beams = request.trace;
  const std::span<const std::string> line(&request.text, 1);
  std::vector<std::int32_t> prefix = ids_of_pieces(translator.target(), request.prefix);
  Edited made;
  made.before = made.after = std::move(translator.translate(line, settings, context)[0]);
  if (what_if.empty() && prefix.empty()) return made;
  settings.prefix = std::move(prefix);
  settings.what_if = &what_if;
  made.after = std::move(translator.translate(line, settings, context)[0]);
  return made;
}

std::string edited_json(const Edited& edited, const Model& model, const EditRequest& request, const Limits& limits) {
  JsonWriter out;
  out.begin_object();
  write_side(out, "before", model.translator, edited.before.best[0]);
  write_side(out, "after", model.translator, edited.after.best[0]);
  if (request.alternatives > 0) {
    out.key("alternatives").begin_array();
    for (std::size_t i = 1; i < edited.after.best.size(); ++i) out.value(edited.after.best[i].text);
    out.end_array();
  }
  if (request.attention) {
    out.key("attention");
    write_attention(out, model.translator, *edited.after.best[0].looked, *request.attention, limits.weights);
  }
  return out.end_object().text();
}

std::string trace_bytes(const Model& model, std::string_view line, std::span<const Traced> results,
                        const Limits& limits, const Context& context) {
  const std::string text(line);
  Trace trace;
  std::uint64_t bytes = 0;
  for (const Traced& each : results) {
    for (std::size_t i = 0; i < each.found.best.size(); ++i) {
      TraceItem item = std::move(traces_of(model.translator, std::span(&text, 1), std::span(&each.found.best[i], 1),
                                           TraceSettings{}, context)[0]);
      if (i == 0) {
        item.title = each.title;
        TraceBeam beam = beam_of(model.translator, each.found.beams);
        if (!beam.steps.empty()) item.beam = std::move(beam);
      }
      bytes += TraceRecord(item, trace.items.size()).data;
      if (bytes > static_cast<std::uint64_t>(kMapsAtOnce * limits.weights) * sizeof(float)) {
        throw Refusal(413, "trace: too many weights for one answer: ask for fewer alternatives or a shorter text");
      }
      trace.items.push_back(std::move(item));
    }
  }
  return trace.bytes();
}

}  // namespace regard::serve
