#include "tasks/traces.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/pool.h"
#include "base/utf8.h"
#include "tasks/translation_pairs.h"

namespace regard {
namespace {

constexpr std::uint64_t kMostHeader = std::uint64_t{15} << 20;  // safetensors has room for 16 MiB
constexpr std::size_t kTogether = 64;                           // results whose maps are made at a time

// Where a byte stands between letters: pieces may be single bytes of one.
std::size_t border_before(std::string_view text, std::size_t at) {
  while (at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
  return at;
}
std::size_t border_behind(std::string_view text, std::size_t at) {
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) ++at;
  return at;
}

// The word with which a token shares most bytes, the first of several; −1: none.
std::int64_t word_of(const Token& token, const std::vector<TextUnit>& words) {
  std::int64_t best = -1;
  std::size_t most = 0;
  auto at = std::partition_point(words.begin(), words.end(), [&](const TextUnit& w) { return w.end <= token.begin; });
  for (; at != words.end() && at->begin < token.end; ++at) {
    const std::size_t from = std::max<std::size_t>(token.begin, at->begin);
    const std::size_t to = std::min<std::size_t>(token.end, at->end);
    if (to <= from + most) continue;
    most = to - from;
    best = at - words.begin();
  }
  return best;
}

TraceAxis axis_of(const char* name, const std::string& text, const std::vector<Token>& tokens,
                  const std::vector<TextUnit>& words, const Tokenizer& tokenizer) {
  TraceAxis made{.name = name, .text = text};
  made.tokens.reserve(tokens.size() + 2);  // an end or a begin will come
  for (const Token& token : tokens) {
    made.tokens.push_back({.text = tokenizer.piece(token.id),
                           .begin = border_before(text, token.begin),
                           .end = border_behind(text, token.end),
                           .word = word_of(token, words)});
  }
  return made;
}

void add_map(TraceItem& item, const char* name, const char* rows, const char* columns, const Tensor& weights,
             const Tensor& norms) {
  if (!weights.defined() || weights[0] == 0) return;
  item.maps.push_back({.name = name, .rows = rows, .columns = columns, .weights = weights, .norms = norms});
}

TraceItem item_of(const Translator& translator, const std::string& line, const Translator::Result& result,
                  const Translator::Looked& looked, const TraceSettings& settings,
                  const std::optional<AlignmentChoice>& choice) {
  const PairUnits words = units_of(translator, {.source = line, .target = result.text}, looked, AlignmentLevel::kWord,
                                   settings.alignment.words);
  TraceItem item{.axes = {axis_of("source", line, looked.source, words.source, translator.source()),
                          axis_of("target", result.text, looked.target, words.target, translator.target())},
                 .maps = {}};
  const auto special = [](const Tokenizer& tokenizer, std::int32_t id, std::size_t at) {
    return TraceToken{.text = tokenizer.piece(id), .begin = at, .end = at};
  };
  const bool at_itself = settings.maps >= Keeps::kMaps && looked.decoder.weights.defined();
  if (at_itself) {
    TraceAxis written = item.axes[1];
    written.name = "written";
    written.tokens.insert(written.tokens.begin(), special(translator.target(), translator.target().special().begin, 0));
    item.axes.push_back(std::move(written));
  }
  item.axes[0].tokens.push_back(special(translator.source(), translator.source().special().end, line.size()));
  item.axes[1].tokens.push_back(special(translator.target(), translator.target().special().end, result.text.size()));
  const bool norms = settings.maps >= Keeps::kEverything;
  const auto norms_of = [&](const Tensor& all) { return norms ? all : Tensor(); };
  add_map(item, "cross", "target", "source", looked.weights, norms_of(looked.norms));
  if (at_itself) {
    add_map(item, "encoder", "source", "source", looked.encoder.weights, norms_of(looked.encoder.norms));
    add_map(item, "decoder", "written", "written", looked.decoder.weights, norms_of(looked.decoder.norms));
    item.maps.back().causal = true;
  }
  if (choice) {
    item.choice = TraceChoice{.map = "cross", .layer = choice->layer, .head = choice->head, .shift = choice->shift};
  }
  if (std::isfinite(result.log_probability)) item.log_probability = result.log_probability;
  return item;
}

// What the maps of a result will take, before they are made.
std::uint64_t bytes_ahead(const Translator& translator, const std::string& line, const Translator::Result& result,
                          Keeps maps) {
  const AttentionShape shape = translator.attention_shape();
  const ModelSettings& model = translator.model_settings();
  const bool transformer = maps >= Keeps::kMaps && model.family == "transformer";
  const auto rows = static_cast<double>(result.tokens.size() + 1),
             columns = static_cast<double>(
                 (result.looked ? result.looked->source.size() : translator.source().encode(line).size()) + 1);
  double numbers = static_cast<double>(shape.layers * shape.heads) * rows * columns;
  if (transformer) {
    const auto heads = static_cast<double>(model.heads);
    numbers += heads * (static_cast<double>(model.encoder_layers) * columns * columns +
                        static_cast<double>(model.decoder_layers) * rows * rows);
  }
  return static_cast<std::uint64_t>(std::min(4 * numbers, 1e18));
}

}  // namespace

std::vector<TraceItem> traces_of(const Translator& translator, std::span<const std::string> lines,
                                 std::span<const Translator::Result> results, const TraceSettings& settings,
                                 const Context& context) {
  std::optional<AlignmentChoice> choice;
  if (translator.attention_shape().layers > 0) choice = choice_of(translator, settings.alignment);
  const std::vector<std::shared_ptr<const Translator::Looked>> looked =
      translator.look(lines, results, settings.maps, settings.batch_tokens, context);
  std::vector<std::optional<TraceErasure>> erasing(lines.size());
  if (settings.erasure && choice) {
    erasing = erasures(translator, lines, results, looked, *choice, settings.erasing, settings.batch_tokens, context);
  }
  std::vector<TraceItem> made(lines.size());
  parallel(lines.size(), [&](std::size_t i) {
    made[i] = item_of(translator, lines[i], results[i], *looked[i], settings, choice);
    made[i].erasure = erasing[i];
  });
  return made;
}

TraceItem trace_of(const Translator& translator, std::string_view line, const Translator::Result& result,
                   const TraceSettings& settings) {
  const std::string text(line);
  return std::move(traces_of(translator, std::span(&text, 1), std::span(&result, 1), settings)[0]);
}

TraceBeam beam_of(const Translator& translator, std::span<const SearchSteps> parts) {
  TraceBeam made;
  for (const SearchSteps& part : parts) {
    for (const std::vector<SearchRow>& step : part) {
      made.steps.emplace_back();
      for (const SearchRow& row : step) {
        made.steps.back().push_back({translator.target().piece(row.word), row.parent, row.log_probability});
      }
    }
  }
  return made;
}

void TraceCollector::add(const Translator& translator, std::span<const std::string> lines,
                         std::span<const Translator::Result> results, std::span<const std::string> titles,
                         std::span<const TraceBeam> beams, const Context& context) {
  check(lines.size() == results.size() && (titles.empty() || titles.size() == lines.size()) &&
            (beams.empty() || beams.size() == lines.size()),
        "trace: ", lines.size(), " lines, ", results.size(), " results, ", titles.size(), " titles, ", beams.size(),
        " beams");
  for (std::size_t begin = 0; begin < lines.size();) {
    // As many as surely fit. Once something did not, nothing that comes later is taken: a trace has the first ones.
    std::uint64_t ahead = 0;
    std::size_t end = begin;
    while (left_out_ == 0 && end < lines.size() && end - begin < kTogether) {
      ahead += bytes_ahead(translator, lines[end], results[end], settings_.maps);
      if (data_ + ahead > most_) break;
      ++end;
    }
    if (end == begin) {
      left_out_ += lines.size() - begin;
      return;
    }
    const std::size_t count = end - begin;
    std::vector<TraceItem> some =
        traces_of(translator, lines.subspan(begin, count), results.subspan(begin, count), settings_, context);
    std::vector<TraceRecord> records(count);
    parallel(count, [&](std::size_t i) {
      TraceItem& item = some[i];
      if (!titles.empty()) item.title = titles[begin + i];
      if (!beams.empty() && !beams[begin + i].steps.empty()) item.beam = beams[begin + i];
      records[i] = TraceRecord(item, trace_.items.size() + i);
    });
    for (std::size_t i = 0; i < count; ++i) {
      TraceRecord& record = records[i];
      if (left_out_ > 0 || data_ + record.data > most_ || header_ + record.header > kMostHeader) {
        ++left_out_;
        continue;
      }
      data_ += record.data;
      header_ += record.header;
      trace_.items.push_back(std::move(some[i]));
      records_.push_back(std::move(record));
    }
    begin = end;
  }
}

void TraceCollector::add(const Translator& translator, std::span<const std::string> lines,
                         std::span<const Translator::Translation> found, std::span<const std::uint64_t> numbers,
                         const Context& context) {
  check(lines.size() == found.size() && lines.size() == numbers.size(), "trace: ", lines.size(), " lines, ",
        found.size(), " translations and ", numbers.size(), " numbers");
  std::vector<std::string> sources, titles;
  std::vector<Translator::Result> results;
  std::vector<TraceBeam> beams;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::vector<Translator::Result>& best = found[i].best;
    const bool empty = best[0].looked ? best[0].looked->source.empty() : translator.source().encode(lines[i]).empty();
    if (empty) continue;
    for (std::size_t k = 0; k < best.size(); ++k) {
      sources.push_back(lines[i]);
      results.push_back(best[k]);
      titles.push_back(text("line ", numbers[i]));
      if (best.size() > 1) titles.back() += text(", ", k + 1, " of ", best.size());
      beams.push_back(k == 0 ? beam_of(translator, found[i].beams) : TraceBeam());
    }
  }
  add(translator, sources, results, titles, beams, context);
}

void TraceCollector::add(const Translator& translator, std::span<const TextPair> pairs,
                         std::span<const std::uint64_t> numbers, bool join, std::int64_t longest,
                         const Context& context) {
  check(pairs.size() == numbers.size(), "trace: ", pairs.size(), " pairs and ", numbers.size(), " numbers");
  if (left_out_ > 0) {  // it is full
    left_out_ += pairs.size();
    return;
  }
  const Room room = translator.room(longest);
  std::vector<std::string> sources, titles;
  std::vector<Translator::Result> results;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    std::string source = join ? joined(pairs[i].source).text : pairs[i].source;
    std::string target = join ? joined(pairs[i].target).text : pairs[i].target;
    std::vector<Token> tokens = translator.target().encode(target);
    if (!has_room(room, translator.source().encode(source).size(), tokens.size())) continue;
    titles.push_back(text("line ", numbers[i]));
    sources.push_back(std::move(source));
    results.push_back({.text = std::move(target), .tokens = std::move(tokens)});
  }
  const std::vector<double> likely = translator.log_probabilities(sources, results, settings_.batch_tokens, context);
  for (std::size_t i = 0; i < results.size(); ++i) results[i].log_probability = likely[i];
  add(translator, sources, results, titles, {}, context);
}

void TraceCollector::write(const std::string& path) {
  write_trace(path, records_);
  parallel(trace_.items.size(), [&](std::size_t i) { trace_.items[i] = {}; });  // many small pieces of memory
  trace_.items.clear();
  records_.clear();
}

}  // namespace regard
