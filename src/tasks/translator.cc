#include "tasks/translator.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cmath>

#include "autograd/int8_weights.h"
#include "base/check.h"
#include "base/pool.h"
#include "data/prepare.h"
#include "data/sentences.h"
#include "decode/sample.h"
#include "io/json.h"
#include "io/model_file.h"
#include "models/ensemble.h"
#include "models/tape_pool.h"
#include "tasks/translation_pairs.h"
#include "tasks/translation_settings.h"

namespace regard {

namespace {

// One model, as its file has it.
struct Member {
  std::string config;
  ModelSettings settings;
  TokenizerPair tokenizers;
  std::string tokenizer_bytes;  // of both
  std::int64_t longest = 0;     // tokens of a source, in training
  Parameters parameters;
  std::unique_ptr<SequenceModel> model;
};

std::unique_ptr<Member> load(const std::string& path, bool int8) {
  auto made = std::make_unique<Member>();
  const ModelFile file = load_model(disk(), path);
  made->config = file.config();
  const Json config = Json::parse(file.config(), text("config of '", path, "'"));
  const std::string task(config.at("task").text());
  check(task == "translate", "'", path, "' is a model for '", task, "', expected 'translate'");
  for (const auto& [key, value] : config.at("model").object()) set(made->settings, key, value.text());
  TranslationSettings training;
  for (const auto& [key, value] : config.at("training").object()) {
    if (key == "longest_text") translation_table().set(training, key, value.text());
  }
  made->longest = training.longest_text;
  const std::string &source_bytes = file.tokenizer("source").bytes, &target_bytes = file.tokenizer("target").bytes;
  made->tokenizers.source = Tokenizer::from(source_bytes);
  made->tokenizers.target = source_bytes == target_bytes ? made->tokenizers.source : Tokenizer::from(target_bytes);
  made->tokenizer_bytes = source_bytes + target_bytes;
  const auto fits = [&](const Tokenizer& tokenizer, std::int64_t words, const char* side) {
    check(tokenizer.size() == words, "'", path, "': the ", side, "'s tokenizer has ", tokenizer.size(),
          " ids, the model ", words);
    ends_of(tokenizer);
  };
  fits(*made->tokenizers.source, made->settings.source_words, "source");
  fits(*made->tokenizers.target, made->settings.target_words, "target");
  const Builder builder = Builder::blank(
      made->parameters, DType::kF32, [&](const std::string& name, const Shape& shape) { file.expect(name, shape); });
  made->model = make_model(builder, made->settings);
  file.fill(made->parameters);
  if (int8) use_int8(made->parameters);
  return made;
}

}  // namespace

struct Translator::Impl {
  std::vector<std::unique_ptr<Member>> members;
  std::unique_ptr<Ensemble> ensemble;  // of several
  const SequenceModel* model = nullptr;
  BatchSettings ends;
  TapePool tapes;  // of its decodings, one after another; goes before the models

  // What is drawn is keyed by the line, so that it is the same wherever the line stands.
  std::vector<Hypotheses> draw(const std::vector<SequencePair>& pairs, const std::vector<RandomKey>& keys,
                               const Settings& settings, const LengthLimit& limit, const Context& context) const;
  // Of every pair the logarithm for each token of its target and for the end.
  void force(const std::vector<SequencePair>& pairs, std::int64_t batch_tokens, const Context& context,
             std::vector<std::vector<float>>& found) const;
};

Translator::Translator(const std::vector<std::string>& paths, bool int8) : impl_(std::make_unique<Impl>()) {
  check(!paths.empty(), "translate: no model is named");
  std::vector<const SequenceModel*> models;
  for (const std::string& path : paths) {
    impl_->members.push_back(load(path, int8));
    models.push_back(impl_->members.back()->model.get());
    check(impl_->members.back()->tokenizer_bytes == impl_->members[0]->tokenizer_bytes, "'", path, "' and '", paths[0],
          "' have different tokenizers: they cannot translate together");
  }
  if (models.size() > 1) impl_->ensemble = std::make_unique<Ensemble>(models);
  impl_->model = models.size() > 1 ? impl_->ensemble.get() : models[0];
  impl_->ends = ends_of(target());
}
Translator::~Translator() = default;
Translator::Translator(Translator&&) noexcept = default;
Translator& Translator::operator=(Translator&&) noexcept = default;

const ModelSettings& Translator::model_settings() const { return impl_->members[0]->settings; }
const std::string& Translator::config() const { return impl_->members[0]->config; }

const SequenceModel& Translator::model() const { return *impl_->model; }
std::int64_t Translator::longest_line() const { return std::min(impl_->members[0]->longest, room().source); }
Room Translator::room(std::int64_t most) const {
  Room room = impl_->model->room();
  room.narrow({.source = room.source - 1, .target = room.target - 1});
  room.narrow({.source = most, .target = most});
  return room;
}

AttentionShape Translator::attention_shape() const { return impl_->model->attention_shape(); }
const Tokenizer& Translator::source() const { return *impl_->members[0]->tokenizers.source; }
const Tokenizer& Translator::target() const { return *impl_->members[0]->tokenizers.target; }

std::vector<Hypotheses> Translator::Impl::draw(const std::vector<SequencePair>& pairs,
                                               const std::vector<RandomKey>& keys, const Settings& settings,
                                               const LengthLimit& limit, const Context& context) const {
  std::vector<Hypotheses> found(pairs.size());
  for_each_batch(pairs, std::max<std::int64_t>(1, settings.batch_tokens / settings.best), ends,
                 [&](const Batch& batch, const auto& number) {
                   std::vector<RandomKey> some;
                   for (std::int64_t row = 0; row < batch.size(); ++row) some.push_back(keys[number(row)]);
                   std::vector<Hypotheses> drawn = regard::sample(*model, batch, some,
                                                                  {.begin = ends.begin,
                                                                   .end = ends.end,
                                                                   .samples = settings.best,
                                                                   .top_k = settings.top_k,
                                                                   .top_p = settings.top_p,
                                                                   .temperature = settings.temperature,
                                                                   .penalty = settings.length_penalty,
                                                                   .limit = limit},
                                                                  context);
                   for (std::int64_t row = 0; row < batch.size(); ++row) {
                     found[number(row)] = std::move(drawn[static_cast<std::size_t>(row)]);
                   }
                 });
  return found;
}

void Translator::Impl::force(const std::vector<SequencePair>& pairs, std::int64_t batch_tokens, const Context& context,
                             std::vector<std::vector<float>>& found) const {
  Tape tape;
  for_each_batch(pairs, batch_tokens, ends, [&](const Batch& batch, const auto& number) {
    stop_if_asked(context);
    const Tensor each = model->loss(tape, batch).log_probabilities;
    for (std::int64_t row = 0; row < batch.size(); ++row) {
      const std::int64_t steps = target_steps(batch, row);
      for (std::int64_t t = 0; t < steps; ++t) found[number(row)].push_back(each.data<float>()[t * batch.size() + row]);
    }
    tape.reset();
  });
}

// A line and its result as the model sees them.
struct Translator::LineParts {
  struct Size {  // tokens of a part, without ends
    std::int64_t rows, columns;
  };
  std::vector<Size> sizes;
  std::vector<Token> source;  // of all parts
};

namespace {

// One more part of a line, behind those that the result has.
void add_part(Translator::Result& result, const TextPart& part, const Hypothesis& found, const Tokenizer& target) {
  const std::size_t begin = join(result.text, target.decode(found.words));
  for (Token token : target.places(found.words)) {
    token.begin += static_cast<std::uint32_t>(begin);
    token.end += static_cast<std::uint32_t>(begin);
    result.tokens.push_back(token);
  }
  result.log_probability += found.log_probability;
  result.score += found.score;
  result.parts.push_back({part.begin, part.end, found.words.size()});
}

}  // namespace

namespace {

struct LinePart {
  TextPart place;
  std::vector<std::int32_t> ids;
};

// A line cut into parts of at most `longest` tokens. A part may have a few more by itself than within its line, never
// more than `most`.
std::vector<LinePart> parts_of_line(const Tokenizer& tokenizer, std::string_view line, std::span<const Token> tokens,
                                    std::int64_t longest, std::int64_t most) {
  for (;;) {
    const std::vector<TextPart> cut = cut_long(line, tokens, static_cast<std::size_t>(longest));
    if (cut.size() == 1) return {{cut[0], ids_of(tokens)}};
    std::vector<LinePart> made;
    std::int64_t over = 0;
    for (const TextPart& part : cut) {
      made.push_back({part, tokenizer.ids(line.substr(part.begin, part.end - part.begin))});
      over = std::max(over, static_cast<std::int64_t>(made.back().ids.size()) - most);
    }
    if (over <= 0 || longest == 1) return made;
    longest = std::max<std::int64_t>(1, longest - over);
  }
}

}  // namespace

std::vector<Translator::Translation> Translator::translate(std::span<const std::string> lines, const Settings& settings,
                                                           const Context& context) const {
  const ContextScope scope(context);
  const TapePoolScope tapes(impl_->tapes);
  const std::int64_t most = room().source;
  const std::int64_t longest_line =
      settings.longest_line > 0 ? std::min(settings.longest_line, most) : this->longest_line();
  check(longest_line >= 1, "translate: lines of at most ", longest_line, " tokens, expected 1 or more");
  std::vector<TextPart> parts;                       // of all lines
  std::vector<std::size_t> first(lines.size() + 1);  // of each line, among all parts
  std::vector<SequencePair> pairs;
  std::vector<RandomKey> keys;
  std::vector<std::vector<Token>> encoded(lines.size());
  parallel(lines.size(), [&](std::size_t i) { encoded[i] = source().encode(lines[i]); });
  for (std::size_t i = 0; i < lines.size(); ++i) {
    first[i] = parts.size();
    const std::vector<Token>& tokens = encoded[i];
    if (tokens.empty()) continue;
    for (LinePart& part : parts_of_line(source(), lines[i], tokens, longest_line, most)) {
      const std::string_view text =
          std::string_view(lines[i]).substr(part.place.begin, part.place.end - part.place.begin);
      parts.push_back(part.place);
      keys.push_back(RandomKey(settings.seed).at(XXH3_64bits(text.data(), text.size())));
      pairs.push_back({pairs.size(), std::move(part.ids)});
      pairs.back().source.push_back(source().special().end);
    }
  }
  first[lines.size()] = parts.size();
  check((settings.what_if == nullptr && settings.prefix.empty()) || (pairs.size() == 1 && !settings.sample),
        "translate: a what-if or a prefix is of one line, got ", lines.size(), " lines in ", pairs.size(), " parts");
  const LengthLimit limit{.words = settings.longest};
  std::vector<SearchSteps> steps;
  std::vector<Hypotheses> found = settings.sample
                                      ? impl_->draw(pairs, keys, settings, limit, context)
                                      : search_all(*impl_->model, pairs,
                                                   {.begin = impl_->ends.begin,
                                                    .end = impl_->ends.end,
                                                    .beam = settings.beam,
                                                    .best = settings.best,
                                                    .penalty = settings.length_penalty,
                                                    .limit = limit,
                                                    .prefix = settings.prefix,
                                                    .keeps = settings.keeps,
                                                    .what_if = settings.what_if},
                                                   settings.batch_tokens, context, settings.beams ? &steps : nullptr);
  std::vector<Translation> made(lines.size());
  parallel(lines.size(), [&](std::size_t line) {
    const std::size_t begin = first[line], end = first[line + 1];
    std::vector<Result>& best = made[line].best;
    best.resize(1);  // what has no words is translated by nothing
    for (std::size_t p = begin; p < end; ++p) {
      // The n-th best of a cut line is made of the n-th best of its parts, as long as all have one.
      if (p == begin || best.size() > found[p].size()) best.resize(found[p].size());
      if (!steps.empty()) made[line].beams.push_back(std::move(steps[p]));
      for (std::size_t i = 0; i < best.size(); ++i) add_part(best[i], parts[p], found[p][i], target());
    }
    if (settings.keeps == Keeps::kNothing || settings.sample || begin == end) return;
    for (std::size_t i = 0; i < best.size(); ++i) {
      std::vector<EveryMap> maps;
      for (std::size_t p = begin; p < end; ++p) maps.push_back(std::move(found[p][i].looked));
      best[i].looked = std::make_shared<const Looked>(
          put_together(parts_of(lines[line], best[i], &encoded[line]), best[i], maps, settings.keeps));
    }
  });
  return made;
}

std::vector<Translator::Result> Translator::force(std::span<const TextPair> given, const Settings& settings,
                                                  const Context& context) const {
  const ContextScope scope(context);
  std::vector<Result> results;
  std::vector<SequencePair> pairs;
  for (const TextPair& each : given) {
    results.push_back({.text = each.target, .tokens = target().encode(each.target)});
    pairs.push_back({pairs.size(), source_ids(source(), each.source), ids_of(results.back().tokens)});
    check_room(impl_->model->room(), pairs.back());
  }
  std::vector<std::vector<float>> found(pairs.size());
  impl_->force(pairs, settings.batch_tokens, context, found);
  for (std::size_t i = 0; i < found.size(); ++i) {
    Result& result = results[i];
    result.each = std::move(found[i]);
    for (const float each : result.each) result.log_probability += static_cast<double>(each);
    result.score = result.log_probability / std::pow(static_cast<double>(result.each.size()), settings.length_penalty);
  }
  return results;
}

Translator::LineParts Translator::parts_of(std::string_view line, const Result& result,
                                           const std::vector<Token>* encoded) const {
  std::vector<Part> parts = result.parts;
  if (parts.empty()) parts = {{0, line.size(), result.tokens.size()}};
  LineParts made;
  std::size_t row = 0;
  for (const Part& part : parts) {
    check(part.begin <= part.end && part.end <= line.size() && part.tokens <= result.tokens.size() - row,
          "look: this result is of another line");
    const bool known = encoded != nullptr && part.begin == 0 && part.end == line.size();
    const std::vector<Token> tokens =
        known ? *encoded : source().encode(line.substr(part.begin, part.end - part.begin));
    made.sizes.push_back({static_cast<std::int64_t>(part.tokens), static_cast<std::int64_t>(tokens.size())});
    for (Token token : tokens) {
      token.begin += static_cast<std::uint32_t>(part.begin);
      token.end += static_cast<std::uint32_t>(part.begin);
      made.source.push_back(token);
    }
    row += part.tokens;
  }
  return made;
}

void Translator::add_pairs(const LineParts& parts, const Result& result, std::vector<SequencePair>& pairs) const {
  std::size_t row = 0, column = 0;
  for (const LineParts::Size& size : parts.sizes) {
    const auto rows = static_cast<std::size_t>(size.rows), columns = static_cast<std::size_t>(size.columns);
    pairs.push_back({pairs.size(), ids_of(std::span(parts.source).subspan(column, columns)),
                     ids_of(std::span(result.tokens).subspan(row, rows))});
    pairs.back().source.push_back(source().special().end);
    row += rows;
    column += columns;
  }
}

namespace {

using Places = std::vector<std::int64_t>;  // where each row or column goes in the whole; −1: nowhere

// Tokens that begin at `first`, and behind them the end of the whole, which is there for all parts.
Places with_end(std::int64_t tokens, std::int64_t first, std::int64_t end) {
  Places made;
  for (std::int64_t i = 0; i < tokens; ++i) made.push_back(first + i);
  made.push_back(end);
  return made;
}

Places with_begin(std::int64_t tokens, std::int64_t first, std::int64_t begin) {
  Places made = {begin};
  for (std::int64_t i = 0; i < tokens; ++i) made.push_back(first + 1 + i);
  return made;
}

// A part of a map [layers, heads, rows, columns], or of norms [layers, heads, columns], into the whole.
void put(const Tensor& whole, const Tensor& part, const Places& rows, const Places& columns) {
  const auto down = static_cast<std::int64_t>(rows.size()), across = static_cast<std::int64_t>(columns.size());
  const std::int64_t maps = part[0] * part[1], width = whole[whole.rank() - 1];
  const std::int64_t height = whole.rank() == 4 ? whole[2] : 1;
  for (std::int64_t at = 0; at < maps * down; ++at) {
    const std::int64_t row = rows[static_cast<std::size_t>(at % down)];
    if (row < 0) continue;
    const float* const from = part.data<float>() + at * across;
    float* const to = whole.data<float>() + (at / down * height + row) * width;
    for (std::int64_t i = 0; i < across; ++i) {
      const std::int64_t column = columns[static_cast<std::size_t>(i)];
      if (column >= 0) to[column] = from[i];
    }
  }
}

// A map [size, size] of something over itself. What all parts share (the end, the begin) is in `columns` of each and in
// `rows` of one.
void put(HeadMaps& whole, const HeadMaps& part, std::int64_t size, const Places& rows, const Places& columns) {
  if (!part.weights.defined()) return;
  const std::int64_t layers = part.weights[0], heads = part.weights[1];
  if (!whole.weights.defined()) {
    whole.weights = Tensor::zeros({layers, heads, size, size});
    if (part.norms.defined()) whole.norms = Tensor::zeros({layers, heads, size});
  }
  put(whole.weights, part.weights, rows, columns);
  if (part.norms.defined()) put(whole.norms, part.norms, {0}, rows);
}

}  // namespace

Translator::Looked Translator::put_together(LineParts parts, const Result& result, std::span<const EveryMap> maps,
                                            Keeps has) const {
  const AttentionShape shape = attention_shape();
  Looked looked{.source = std::move(parts.source), .target = result.tokens, .weights = {}, .has = has};
  const auto target = static_cast<std::int64_t>(looked.target.size()),
             source = static_cast<std::int64_t>(looked.source.size());
  const bool whole = maps.size() == 1;
  if (whole) {
    looked.weights = maps[0].cross.weights;
    looked.norms = maps[0].cross.norms;
    looked.encoder = maps[0].encoder;
    looked.decoder = maps[0].decoder;
  }
  if (!looked.weights.defined()) {
    looked.weights = Tensor::zeros({shape.layers, shape.heads, target + 1, source + 1});
  }
  std::int64_t row = 0, column = 0;
  for (std::size_t i = 0; i < maps.size() && !whole; ++i) {
    const auto [rows, columns] = parts.sizes[i];
    const bool first = i == 0, last = i + 1 == maps.size();
    const Places across = with_end(columns, column, source);
    const Places own = with_end(columns, column, last ? source : -1);
    const HeadMaps& cross = maps[i].cross;
    if (cross.weights.defined()) {
      put(looked.weights, cross.weights, with_end(rows, row, last ? target : -1), across);
    }
    if (cross.norms.defined()) {
      if (!looked.norms.defined()) looked.norms = Tensor::zeros({shape.layers, shape.heads, source + 1});
      put(looked.norms, cross.norms, {0}, own);
    }
    put(looked.encoder, maps[i].encoder, source + 1, own, across);
    put(looked.decoder, maps[i].decoder, target + 1, with_begin(rows, row, first ? 0 : -1), with_begin(rows, row, 0));
    row += rows;
    column += columns;
  }
  return looked;
}

std::vector<std::shared_ptr<const Translator::Looked>> Translator::look(std::span<const std::string> lines,
                                                                        std::span<const Result> results, Keeps asked,
                                                                        std::int64_t batch_tokens,
                                                                        const Context& context) const {
  check(lines.size() == results.size(), "look: ", lines.size(), " lines and ", results.size(), " results");
  const ContextScope scope(context);
  const TapePoolScope tapes(impl_->tapes);
  std::vector<std::shared_ptr<const Looked>> made(lines.size());
  std::vector<std::size_t> others, first;  // of which that was not kept; their first pairs
  std::vector<LineParts> parts;
  std::vector<SequencePair> pairs;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (results[i].looked && results[i].looked->has >= asked) {
      made[i] = results[i].looked;
      continue;
    }
    others.push_back(i);
    first.push_back(pairs.size());
    parts.push_back(parts_of(lines[i], results[i]));
    add_pairs(parts.back(), results[i], pairs);
  }
  const Keeps has = asked > Keeps::kSource ? Keeps::kEverything : Keeps::kSource;
  std::vector<EveryMap> maps(pairs.size());
  for_each_batch(pairs, batch_tokens, impl_->ends, [&](const Batch& batch, const auto& number) {
    stop_if_asked(context);
    std::vector<EveryMap> some;
    if (has == Keeps::kEverything) {
      some = impl_->model->every_attention(batch);
    } else {
      for (Tensor& each : impl_->model->all_attention(batch)) some.push_back({.cross = {.weights = std::move(each)}});
    }
    for (std::size_t i = 0; i < some.size(); ++i) maps[number(static_cast<std::int64_t>(i))] = std::move(some[i]);
  });
  for (std::size_t i = 0; i < others.size(); ++i) {
    const std::size_t count = parts[i].sizes.size();
    made[others[i]] = std::make_shared<const Looked>(
        put_together(std::move(parts[i]), results[others[i]], std::span(maps).subspan(first[i], count), has));
  }
  return made;
}

std::vector<Translator::Looked> Translator::look(std::span<const std::string> lines, std::span<const Result> results,
                                                 std::int64_t batch_tokens, const Context& context) const {
  std::vector<Looked> made;
  made.reserve(lines.size());
  for (const auto& each : look(lines, results, Keeps::kSource, batch_tokens, context)) made.push_back(*each);
  return made;
}

std::vector<double> Translator::log_probabilities(std::span<const std::string> lines, std::span<const Result> results,
                                                  std::int64_t batch_tokens, const Context& context) const {
  const ContextScope scope(context);
  check(lines.size() == results.size(), "look: ", lines.size(), " lines and ", results.size(), " results");
  std::vector<SequencePair> pairs;
  std::vector<std::size_t> line_of;  // of each pair
  for (std::size_t i = 0; i < lines.size(); ++i) {
    add_pairs(parts_of(lines[i], results[i]), results[i], pairs);
    line_of.resize(pairs.size(), i);
  }
  std::vector<std::vector<float>> found(pairs.size());
  impl_->force(pairs, batch_tokens, context, found);
  std::vector<double> made(lines.size(), 0);
  for (std::size_t i = 0; i < found.size(); ++i) {  // in the order of the parts
    for (const float each : found[i]) made[line_of[i]] += static_cast<double>(each);
  }
  return made;
}

Translator::Looked Translator::look(std::string_view line, const Result& result) const {
  const std::string text(line);
  return std::move(look(std::span(&text, 1), std::span(&result, 1))[0]);
}

std::vector<std::string> labels_of(const Tokenizer& tokenizer, std::span<const Token> tokens) {
  std::vector<std::string> labels;
  for (const Token& token : tokens) labels.push_back(tokenizer.piece(token.id));
  labels.push_back(tokenizer.piece(tokenizer.special().end));
  return labels;
}

}  // namespace regard
