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
  made->model = make_model(Builder::blank(made->parameters), made->settings);
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

// Lines and results as the model sees them, a pair a part.
struct Translator::Pairs {
  struct Place {  // of a part: where its first row and column are in the map of the whole
    std::size_t line;
    std::int64_t row, column;
  };
  std::vector<Place> places;
  std::vector<SequencePair> pairs;
  std::vector<std::vector<Token>> sources;  // of each line
};

std::vector<Translator::Translation> Translator::translate(std::span<const std::string> lines, const Settings& settings,
                                                           const Context& context) const {
  const ContextScope scope(context);
  const TapePoolScope tapes(impl_->tapes);
  const std::int64_t longest_line = settings.longest_line > 0 ? settings.longest_line : impl_->members[0]->longest;
  check(longest_line >= 1, "translate: lines of at most ", longest_line, " tokens, expected 1 or more");
  struct Place {
    std::size_t line;
    TextPart part;
  };
  std::vector<Place> places;
  std::vector<SequencePair> pairs;
  std::vector<RandomKey> keys;
  std::vector<std::vector<Token>> encoded(lines.size());
  parallel(lines.size(), [&](std::size_t i) { encoded[i] = source().encode(lines[i]); });
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::vector<Token>& tokens = encoded[i];
    if (tokens.empty()) continue;
    const std::vector<TextPart> parts = cut_long(lines[i], tokens, static_cast<std::size_t>(longest_line));
    for (const TextPart& part : parts) {
      const std::string_view text = std::string_view(lines[i]).substr(part.begin, part.end - part.begin);
      places.push_back({i, part});
      keys.push_back(RandomKey(settings.seed).at(XXH3_64bits(text.data(), text.size())));
      pairs.push_back({pairs.size(), parts.size() == 1 ? ids_of(tokens) : source().ids(text)});
      pairs.back().source.push_back(source().special().end);
    }
  }
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
  for (Translation& each : made) each.best.resize(1);  // what has no words is translated by nothing
  std::vector<bool> begun(lines.size(), false);
  for (std::size_t p = 0; p < places.size(); ++p) {
    const auto& [line, part] = places[p];
    std::vector<Result>& best = made[line].best;
    // The n-th best of a cut line is made of the n-th best of its parts, as long as all have one.
    if (!begun[line] || best.size() > found[p].size()) best.resize(found[p].size());
    begun[line] = true;
    if (!steps.empty()) made[line].beams.push_back(std::move(steps[p]));
    for (std::size_t i = 0; i < best.size(); ++i) {
      const Hypothesis& h = found[p][i];
      const std::size_t begin = join(best[i].text, target().decode(h.words));
      for (Token token : target().places(h.words)) {
        token.begin += static_cast<std::uint32_t>(begin);
        token.end += static_cast<std::uint32_t>(begin);
        best[i].tokens.push_back(token);
      }
      best[i].log_probability += h.log_probability;
      best[i].score += h.score;
      best[i].parts.push_back({part.begin, part.end, h.words.size()});
    }
  }
  if (settings.keeps == Keeps::kNothing || settings.sample) return made;
  std::vector<std::string> whole;
  std::vector<std::vector<Token>> tokens;
  std::vector<Result*> results;
  std::vector<EveryMap> maps;
  for (std::size_t p = 0; p < places.size();) {
    const std::size_t line = places[p].line, parts = made[line].best[0].parts.size();
    for (std::size_t i = 0; i < made[line].best.size(); ++i) {
      whole.push_back(lines[line]);
      tokens.push_back(encoded[line]);
      results.push_back(&made[line].best[i]);
      for (std::size_t k = 0; k < parts; ++k) maps.push_back(std::move(found[p + k][i].looked));
    }
    p += parts;
  }
  std::vector<Result> copies;
  copies.reserve(results.size());
  for (const Result* each : results) copies.push_back({.text = {}, .tokens = each->tokens, .parts = each->parts});
  std::vector<Looked> looked =
      put_together(pairs_of(whole, copies, tokens), copies, maps, settings.keeps == Keeps::kEverything);
  for (std::size_t i = 0; i < looked.size(); ++i) {
    results[i]->looked = std::make_shared<const Looked>(std::move(looked[i]));
  }
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

Translator::Pairs Translator::pairs_of(std::span<const std::string> lines, std::span<const Result> results,
                                       std::span<std::vector<Token>> encoded) const {
  check(lines.size() == results.size(), "look: ", lines.size(), " lines and ", results.size(), " results");
  Pairs made{.places = {}, .pairs = {}, .sources = std::vector<std::vector<Token>>(lines.size())};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::vector<Token>& target = results[i].tokens;
    std::vector<Part> parts = results[i].parts;
    if (parts.empty()) parts = {{0, lines[i].size(), target.size()}};
    std::size_t row = 0;
    for (const Part& part : parts) {
      check(part.begin <= part.end && part.end <= lines[i].size() && part.tokens <= target.size() - row,
            "look: this result is of another line");
      made.places.push_back({i, static_cast<std::int64_t>(row), static_cast<std::int64_t>(made.sources[i].size())});
      std::vector<Token> tokens =
          part.begin == 0 && part.end == lines[i].size() && !encoded.empty()
              ? std::move(encoded[i])
              : source().encode(std::string_view(lines[i]).substr(part.begin, part.end - part.begin));
      made.pairs.push_back({made.pairs.size(), ids_of(tokens), ids_of(std::span(target).subspan(row, part.tokens))});
      made.pairs.back().source.push_back(source().special().end);
      for (Token& token : tokens) {
        token.begin += static_cast<std::uint32_t>(part.begin);
        token.end += static_cast<std::uint32_t>(part.begin);
        made.sources[i].push_back(token);
      }
      row += part.tokens;
    }
  }
  return made;
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
    whole = {.weights = Tensor::zeros({layers, heads, size, size}), .norms = Tensor::zeros({layers, heads, size})};
  }
  put(whole.weights, part.weights, rows, columns);
  put(whole.norms, part.norms, {0}, rows);
}

}  // namespace

std::vector<Translator::Looked> Translator::put_together(Pairs all, std::span<const Result> results,
                                                         std::span<const EveryMap> maps, bool everything) const {
  const AttentionShape shape = attention_shape();
  std::vector<Looked> made(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    made[i].source = std::move(all.sources[i]);
    made[i].target = results[i].tokens;
    made[i].everything = everything;
  }
  for (std::size_t pair = 0; pair < all.pairs.size(); ++pair) {
    const Pairs::Place& place = all.places[pair];
    Looked& looked = made[place.line];
    const auto rows = static_cast<std::int64_t>(all.pairs[pair].target.size()),
               columns = static_cast<std::int64_t>(all.pairs[pair].source.size()) - 1;
    const auto target = static_cast<std::int64_t>(looked.target.size()),
               source = static_cast<std::int64_t>(looked.source.size());
    const bool first = pair == 0 || all.places[pair - 1].line != place.line;
    const bool last = pair + 1 == all.places.size() || all.places[pair + 1].line != place.line;
    const bool whole = first && last, defined = maps[pair].cross.weights.defined();
    if (first && !(whole && defined)) {
      looked.weights = Tensor::zeros({shape.layers, shape.heads, target + 1, source + 1});
    }
    if (whole) {
      if (defined) looked.weights = maps[pair].cross.weights;
      looked.norms = maps[pair].cross.norms;
      looked.encoder = maps[pair].encoder;
      looked.decoder = maps[pair].decoder;
      continue;
    }
    const Places across = with_end(columns, place.column, source);
    const Places own = with_end(columns, place.column, last ? source : -1);
    const HeadMaps& cross = maps[pair].cross;
    if (cross.weights.defined()) {
      put(looked.weights, cross.weights, with_end(rows, place.row, last ? target : -1), across);
    }
    if (cross.norms.defined()) {
      if (!looked.norms.defined()) looked.norms = Tensor::zeros({shape.layers, shape.heads, source + 1});
      put(looked.norms, cross.norms, {0}, own);
    }
    put(looked.encoder, maps[pair].encoder, source + 1, own, across);
    const Places written = with_begin(rows, place.row, first ? 0 : -1);
    put(looked.decoder, maps[pair].decoder, target + 1, written, with_begin(rows, place.row, 0));
  }
  return made;
}

std::vector<Translator::Looked> Translator::look(std::span<const std::string> lines, std::span<const Result> results,
                                                 std::int64_t batch_tokens, const Context& context,
                                                 bool everything) const {
  check(lines.size() == results.size(), "look: ", lines.size(), " lines and ", results.size(), " results");
  const ContextScope scope(context);
  const TapePoolScope tapes(impl_->tapes);
  std::vector<Looked> made(lines.size());
  std::vector<std::size_t> others;  // of which nothing was kept
  std::vector<std::string> other_lines;
  std::vector<Result> other_results;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::shared_ptr<const Looked>& kept = results[i].looked;
    if (kept && (kept->everything || !everything)) {
      made[i] = *kept;
      continue;
    }
    others.push_back(i);
    other_lines.push_back(lines[i]);
    other_results.push_back(results[i]);
  }
  Pairs all = pairs_of(other_lines, other_results);
  std::vector<EveryMap> maps(all.pairs.size());
  for_each_batch(all.pairs, batch_tokens, impl_->ends, [&](const Batch& batch, const auto& number) {
    stop_if_asked(context);
    std::vector<EveryMap> some;
    if (everything) {
      some = impl_->model->every_attention(batch);
    } else {
      for (Tensor& each : impl_->model->all_attention(batch)) some.push_back({.cross = {.weights = std::move(each)}});
    }
    for (std::size_t i = 0; i < some.size(); ++i) maps[number(static_cast<std::int64_t>(i))] = std::move(some[i]);
  });
  std::vector<Looked> looked = put_together(std::move(all), other_results, maps, everything);
  for (std::size_t i = 0; i < others.size(); ++i) made[others[i]] = std::move(looked[i]);
  return made;
}

std::vector<Translator::Looked> Translator::look(std::span<const std::string> lines, std::span<const Result> results,
                                                 std::int64_t batch_tokens, const Context& context) const {
  return look(lines, results, batch_tokens, context, false);
}

std::vector<Translator::Looked> Translator::look_everywhere(std::span<const std::string> lines,
                                                            std::span<const Result> results, std::int64_t batch_tokens,
                                                            const Context& context) const {
  return look(lines, results, batch_tokens, context, true);
}

std::vector<double> Translator::log_probabilities(std::span<const std::string> lines, std::span<const Result> results,
                                                  std::int64_t batch_tokens, const Context& context) const {
  const ContextScope scope(context);
  const Pairs all = pairs_of(lines, results);
  std::vector<std::vector<float>> found(all.pairs.size());
  impl_->force(all.pairs, batch_tokens, context, found);
  std::vector<double> made(lines.size(), 0);
  for (std::size_t i = 0; i < found.size(); ++i) {  // in the order of the parts
    for (const float each : found[i]) made[all.places[i].line] += static_cast<double>(each);
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
