#include "tasks/train_translation.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "base/check.h"
#include "base/pool.h"
#include "data/batches.h"
#include "data/bytes.h"
#include "data/corpus_pairs.h"
#include "data/prepare.h"
#include "decode/bleu.h"
#include "io/json.h"
#include "io/model_file.h"
#include "models/attention_maps.h"
#include "models/guide.h"
#include "models/lines.h"
#include "regard/train/optimizer.h"
#include "tasks/alignment.h"
#include "tasks/evaluation.h"
#include "tasks/token_guide.h"
#include "tasks/translation_pairs.h"

namespace regard {
namespace {

constexpr std::uint64_t kFirstWeights = 100;      // where in the seed's numbers the first weights are
constexpr std::size_t kLookedAt = 16;             // pairs by which a report tells how attention is doing
constexpr std::uint64_t kOtherCuts = 0x63757473;  // where in an update's numbers are those of other ways to cut texts

OpenPairs training_pairs(const TranslationData& data, std::uint64_t seed, const Context& context) {
  if (data.builtin.empty()) return open_pairs(data.train.value(), context);
  return [pairs = std::make_shared<const CorpusPairs>(data.builtin, seed, Corpus::Split::kTrain, data.builtin_lines,
                                                      context)] { return std::make_unique<CorpusStream>(pairs); };
}

std::unique_ptr<PairStream> validation_pairs(const TranslationData& data, std::uint64_t seed, const Context& context) {
  if (data.valid) return std::make_unique<PairReader>(*data.valid);  // read once
  if (data.builtin.empty()) return nullptr;
  return std::make_unique<CorpusStream>(
      std::make_shared<const CorpusPairs>(data.builtin, seed, Corpus::Split::kTest, data.builtin_tests, context));
}

// The stream of batches, one ahead: so the end of an epoch is known with its last batch.
class Feed {
 public:
  Feed(PairBatches batches, std::uint64_t pairs)
      : batches_(std::move(batches)), all_(std::max<std::uint64_t>(1, pairs)) {
    advance();
  }
  std::vector<SequencePair> take() {
    std::vector<SequencePair> taken = std::move(ahead_);
    given_ += taken.size();
    advance();
    return taken;
  }
  double epochs() const {  // those dropped are not known beforehand: a share that never reaches the end by itself
    return static_cast<double>(epochs_) + std::min(0.999, static_cast<double>(given_) / static_cast<double>(all_));
  }
  std::string position() const {
    ByteWriter out;
    for (const std::uint64_t number : {epochs_, given_, at_.epoch, at_.window, at_.batch, at_.start.line,
                                       at_.start.source_byte, at_.start.target_byte}) {
      out.number(number);
    }
    return out.take();
  }
  void seek(std::string_view bytes) {
    ByteReader in(bytes, "the position in the data");
    epochs_ = in.number();
    given_ = in.number();
    for (std::uint64_t* number :
         {&at_.epoch, &at_.window, &at_.batch, &at_.start.line, &at_.start.source_byte, &at_.start.target_byte}) {
      *number = in.number();
    }
    in.end();
    batches_.seek(at_);
    check(batches_.next(ahead_), "the position in the data is behind its end: the data has changed");
  }

 private:
  void advance() {
    at_ = batches_.position();
    if (batches_.next(ahead_)) return;
    ++epochs_;
    given_ = 0;
    at_ = batches_.position();
    batches_.next(ahead_);  // throws if there is none at all
  }

  PairBatches batches_;
  std::uint64_t all_, epochs_ = 0, given_ = 0;
  BatchPosition at_;
  std::vector<SequencePair> ahead_;
};

// Pairs of lines as a number, so that a run that goes on notices other ones.
class PairsSeen {
 public:
  void add(const LinePair& pair) {
    for (const std::string_view text : {std::string_view(pair.source), std::string_view(pair.target)}) {
      hash_ = XXH3_64bits_withSeed(text.data(), text.size(), hash_);
    }
    ++count_;
  }
  std::uint64_t count() const { return count_; }
  std::string text() const { return fmt::format("{} pairs {:016x}", count_, hash_); }

 private:
  XXH64_hash_t hash_ = 0;
  std::uint64_t count_ = 0;
};

// What was left out of a file, if anything was.
std::string left_out(const PairStream& stream) {
  if (stream.report().dropped() == 0) return "";
  std::string said = stream.report().text();
  while (said.ends_with('\n')) said.pop_back();
  return said;
}

// Where a pair with its ids came from.
SequencePair ids_of(const LinePair& pair, const TokenizerPair& tokenizers) {
  return {.id = pair.line,
          .source = source_ids(*tokenizers.source, pair.source),
          .target = tokenizers.target->ids(pair.target)};
}

// What validation looks at.
struct ValidationSet {
  std::vector<std::string> sources, references;
  std::vector<SequencePair> pairs;
  PairsSeen seen = {};
  std::string left_out = {};  // as text
};

ValidationSet read_validation(PairStream& stream, const TokenizerPair& tokenizers, const Room& room,
                              const Context& context) {
  ValidationSet set;
  std::uint64_t too_long = 0, first = 0;
  for (LinePair pair; stream.next(pair);) {
    stop_if_asked(context);
    set.seen.add(pair);
    SequencePair ids = ids_of(pair, tokenizers);
    if (!has_room(room, ids)) {
      if (too_long++ == 0) first = pair.line;
      continue;
    }
    set.pairs.push_back(std::move(ids));
    set.sources.push_back(std::move(pair.source));
    set.references.push_back(std::move(pair.target));
  }
  set.left_out = left_out(stream);
  if (too_long > 0) {
    const std::string said = text("validation: ", too_long, too_long == 1 ? " pair" : " pairs",
                                  " left out, longer than the model has room for (", to_text(room), "), the first at ",
                                  stream.name(), ":", first);
    check(!set.pairs.empty(), said, ": nothing is left");
    set.left_out += (set.left_out.empty() ? "" : "\n") + said;
  }
  check(!set.pairs.empty(), "validation: ", no_pair_text(stream));
  return set;
}

double mean_loss(const SequenceModel& model, const ValidationSet& set, const BatchSettings& ends, std::int64_t tokens,
                 const Context& context) {
  double sum = 0, count = 0;
  Tape tape;
  for_each_batch(set.pairs, tokens, ends, [&](const Batch& batch, const auto&) {
    stop_if_asked(context);
    sum += model.loss(tape, batch).sum.value().item();
    count += static_cast<double>(batch.target_count);
    tape.reset();
  });
  return sum / count;
}

// Of the heads of one kind of attention the entropy of the weights, as a share of the highest that is possible.
std::vector<double> entropies_of_heads(std::span<const EveryMap> maps, HeadMaps EveryMap::*kind, bool causal) {
  std::vector<double> sums, rows;
  for (const EveryMap& every : maps) {
    const Tensor& all = (every.*kind).weights;  // [layers, heads, queries, keys]
    if (!all.defined()) return {};
    const std::int64_t heads = all[0] * all[1], queries = all[2], keys = all[3];
    sums.resize(static_cast<std::size_t>(heads));
    rows.resize(sums.size());
    for (std::int64_t at = 0; at < heads * queries; ++at) {
      const std::int64_t visible = causal ? at % queries + 1 : keys;
      if (visible < 4) continue;
      double entropy = 0;
      for (std::int64_t j = 0; j < visible; ++j) {
        const double p = static_cast<double>(all.data<float>()[at * keys + j]);
        if (p > 0) entropy -= p * std::log(p);
      }
      sums[static_cast<std::size_t>(at / queries)] += entropy / std::log(static_cast<double>(visible));
      ++rows[static_cast<std::size_t>(at / queries)];
    }
  }
  std::vector<double> made;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (rows[i] > 0) made.push_back(sums[i] / rows[i]);
  }
  return made;
}

// How attention is doing: entropies of the look at the source and of looks at themselves, and heads that look
// everywhere alike.
std::map<std::string, double> attention_health(const SequenceModel& model, const Batch& batch) {
  const std::vector<EveryMap> maps = model.every_attention(batch);
  std::map<std::string, double> health;
  double dead = 0;
  const auto add = [&](const char* name, HeadMaps EveryMap::*kind, bool causal) {
    const std::vector<double> heads = entropies_of_heads(maps, kind, causal);
    if (heads.empty()) return;
    health[name] = std::accumulate(heads.begin(), heads.end(), 0.0) / static_cast<double>(heads.size());
    dead += static_cast<double>(std::count_if(heads.begin(), heads.end(), [](double each) { return each > 0.99; }));
  };
  add("attention_entropy", &EveryMap::cross, false);
  add("encoder_entropy", &EveryMap::encoder, false);
  add("decoder_entropy", &EveryMap::decoder, true);
  if (!health.empty()) health["dead_heads"] = dead;
  return health;
}

// The first pairs of a text that one can learn from.
std::vector<SequencePair> some_pairs(PairStream& stream, const TokenizerPair& tokenizers, const Room& room) {
  std::vector<SequencePair> made;
  for (LinePair pair; made.size() < kLookedAt && stream.next(pair);) {
    SequencePair ids = ids_of(pair, tokenizers);
    if (has_room(room, ids)) made.push_back(std::move(ids));
  }
  return made;
}

void check_guide(const ModelSettings& model, const AttentionShape& shape) {
  check(shape.layers > 0, "guide: a model without attention (", model.family, ") looks nowhere");
  check(model.family != "convs2s", "guide: of convs2s it is not known, expected transformer or a recurrent family");
  const std::string line = model.attention.empty() ? "scaled_dot" : model.attention;  // what families have can be told
  check_guided(lines_of("attention", line, shape.layers).back(), static_cast<float>(model.attention_dropout));
}

// Other ways to cut the texts of these pairs: what they are depends on the update and the pair alone. Where a text
// would become too long, or nothing is to be left out, it stays as it is.
void cut_again(std::vector<SequencePair>& pairs, const TokenizerPair& tokenizers, const TranslationSettings& settings,
               RandomKey key) {
  if (settings.piece_dropout == 0) return;
  parallel(pairs.size(), [&](std::size_t i) {
    SequencePair& pair = pairs[i];
    const RandomKey own = key.at(kOtherCuts).at(pair.id);
    std::vector<std::int32_t> source = tokenizers.source->cut_again(pair.source, settings.piece_dropout, own.at(0));
    std::vector<std::int32_t> target = tokenizers.target->cut_again(pair.target, settings.piece_dropout, own.at(1));
    const auto most = static_cast<std::size_t>(settings.longest_text);
    if (source.size() <= most + 1) pair.source = std::move(source);  // its end is not counted
    if (target.size() <= most) pair.target = std::move(target);
  });
}

std::unique_ptr<Optimizer> make_optimizer(Parameters& parameters, const TranslationSettings& settings) {
  const Groups groups = {{"", {.decay = settings.decay}}};
  if (settings.optimizer == "sgd") return std::make_unique<Sgd>(parameters, SgdSettings{.groups = groups});
  if (settings.optimizer == "adadelta") {
    return std::make_unique<Adadelta>(parameters, AdadeltaSettings{.groups = groups});
  }
  return std::make_unique<Adam>(parameters, AdamSettings{.beta2 = settings.beta2, .groups = groups});
}

// What is not said follows from the model.
TranslationSettings completed(TranslationSettings settings, const ModelSettings& model) {
  const bool deep = model.family == "transformer" || model.family == "convs2s";
  if (settings.schedule.empty()) {
    settings.schedule = settings.optimizer == "adam" && deep ? "inverse_sqrt" : "constant";
  }
  if (settings.rate == 0) {
    settings.rate = settings.optimizer == "adadelta" ? 1
                    : settings.optimizer == "sgd"    ? 0.5
                    : deep ? 0.384 / static_cast<double>(std::max<std::int64_t>(64, model.hidden))  // 128: 0.003
                           : 1e-3;
  }
  return settings;
}

std::variant<Schedule, PlateauSettings> make_schedule(const TranslationSettings& settings) {
  if (settings.schedule == "plateau") return PlateauSettings{.rate = settings.rate, .patience = 1};
  if (settings.schedule == "inverse_sqrt") {
    return inverse_square_root({.rate = settings.rate, .warm_up = std::max<std::int64_t>(1, settings.warmup)});
  }
  if (settings.schedule == "cosine") {
    const Count stop = parse_count(settings.stop_after, "stop_after");
    check(stop.unit == Count::Unit::kUpdates, "training: schedule cosine needs stop_after in updates, as 5000u, got '",
          settings.stop_after, "'");
    check(stop.amount > static_cast<double>(settings.warmup), "training: schedule cosine rises for ", settings.warmup,
          " updates (warmup) and falls until stop_after, expected more than that, got ", settings.stop_after);
    return cosine({.rate = settings.rate, .steps = static_cast<std::int64_t>(stop.amount), .warm_up = settings.warmup});
  }
  return constant_rate(settings.rate);
}

void write_settings(JsonWriter& out, std::string_view key, const std::vector<Setting>& all) {
  out.key(key).begin_object();
  for (const auto& [name, value] : all) out.key(name).value(value);
  out.end_object();
}

JsonWriter begin_config(const ModelSettings& model, const TranslationData& data) {
  JsonWriter out;
  out.begin_object().key("task").value("translate");
  if (!data.builtin.empty()) {
    out.key("builtin").value(data.builtin).key("lines").value(data.builtin_lines);
  }
  write_settings(out, "model", list(model));
  return out;
}

// What stands in the model.
std::string config_of(const ModelSettings& model, const TranslationSettings& settings, const TranslationData& data,
                      const std::optional<AlignmentChoice>& choice) {
  JsonWriter out = begin_config(model, data);
  write_settings(out, "training", translation_table().list(settings));
  if (choice) write_choice(out, *choice);
  return out.end_object().text();
}

// What has to be the same when a run goes on.
std::string identity_of(const ModelSettings& model, const TranslationSettings& settings, const TranslationData& data,
                        const PairsSeen& text, const ValidationSet& validation) {
  std::vector<Setting> fixed = translation_table().list(settings);
  std::erase_if(fixed, [&](const Setting& each) { return may_change(settings, each.first); });
  JsonWriter out = begin_config(model, data);
  out.key("text").value(text.text()).key("validation").value(validation.seen.text());
  write_settings(out, "training", fixed);
  return out.end_object().text();
}

}  // namespace

LoopResult train_translation(const TranslationData& data, const ModelSettings& asked, const TranslationSettings& given,
                             const TranslationRun& run, const Context& context) {
  const ContextScope scope(context);
  const auto say = [&](const auto&... parts) {
    if (run.say) run.say(text(parts...));
  };
  ModelSettings model_settings = asked;
  TranslationSettings settings = completed(given, asked);
  if (model_settings.share) settings.joint = true;
  const auto count = [](const std::string& value, std::string_view what) { return parse_count(value, what); };
  LoopSettings loop{.path = run.path, .resume = run.resume, .seed = settings.seed};
  loop.stop_after = count(settings.stop_after, "stop_after");
  loop.valid_every = count(settings.valid_every, "valid_every");
  loop.save_every = count(settings.save_every, "save_every");
  loop.report_every = count(settings.report_every, "report_every");
  loop.accumulate = settings.accumulate;
  loop.clip = settings.clip;
  loop.rate = make_schedule(settings);
  loop.best_by = settings.best_by == "loss" ? BestBy::kLoss : BestBy::kScore;
  loop.patience = settings.patience;
  loop.moving_average = settings.moving_average;
  loop.average = settings.average;
  loop.average_best = settings.average_best;
  const bool in_pieces = settings.tokenizer == "pieces" || settings.tokenizer == "unigram";
  check(settings.piece_dropout == 0 || in_pieces, "training: piece_dropout is for tokenizer pieces or unigram, got ",
        settings.tokenizer);
  check(settings.piece_dropout == 0 || settings.guide == 0,
        "training: piece_dropout and guide do not go together: the aligner knows texts cut in one way only");
  if (!run.resume) check_free(disk(), run.path);
  const std::filesystem::path folder = std::filesystem::path(run.path).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder)) {
    fail(ErrorKind::kFile, "cannot write '", run.path, "': there is no folder '", folder.string(), "'");
  }
  {  // what is wrong with the model should be known before the data is read
    Parameters unused;
    model_settings.source_words = model_settings.target_words = 8;
    const auto tried = make_model(Builder(unused, RandomKey(0)), model_settings);
    if (settings.guide > 0) check_guide(model_settings, tried->attention_shape());
  }

  const OpenPairs open = training_pairs(data, settings.seed, context);
  PairsSeen pairs;
  {
    const std::unique_ptr<PairStream> stream = open();
    for (LinePair pair; stream->next(pair);) {
      pairs.add(pair);
      if (pairs.count() % 1024 == 0) stop_if_asked(context);
    }
    check(pairs.count() > 0, "training: ", no_pair_text(*stream));
    if (const std::string missing = left_out(*stream); !missing.empty()) say(missing);
  }
  const TokenizerPair tokenizers = build_tokenizers(open,
                                                    {.kind = settings.tokenizer,
                                                     .size = settings.vocabulary,
                                                     .joint = settings.joint,
                                                     .lower = settings.lower,
                                                     .least_count = static_cast<std::uint64_t>(settings.least_count),
                                                     .dictionary = data.dictionary},
                                                    context);
  model_settings.source_words = tokenizers.source->size();
  model_settings.target_words = tokenizers.target->size();
  say("Text   ", pairs.count(), " pairs; ", settings.tokenizer, ": ", model_settings.source_words, " of the source, ",
      model_settings.target_words, " of the target", settings.joint ? " (the same)" : "");
  loop.tokenizers = {{"source", std::string(tokenizers.source->kind()), tokenizers.source->bytes()},
                     {"target", std::string(tokenizers.target->kind()), tokenizers.target->bytes()}};
  Parameters parameters;
  const std::unique_ptr<SequenceModel> model =
      make_model(Builder(parameters, RandomKey(settings.seed).at(kFirstWeights)), model_settings);
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(parameters, settings);
  std::optional<AlignmentChoice> choice;  // what is told is what aligns
  if (settings.guide > 0) {
    choice = usual_choice(model->attention_shape());
    choice->shift = settings.guide_shift;
  }
  say("Model  ", model_settings.family, ", ", parameters.count(), " weights");
  const Room room = model->room();
  if (const std::int64_t most = std::min(room.source, room.target) - 1; most < settings.longest_text) {
    settings.longest_text = most;
    check(most >= 1, "training: a model with room for ", to_text(room), " learns nothing");
    say("       It has room for ", to_text(room), ": pairs with more than ", most, " on a side are left out");
  }
  ValidationSet validation;
  if (const std::unique_ptr<PairStream> stream = validation_pairs(data, settings.seed, context)) {
    validation = read_validation(*stream, tokenizers, room, context);
    if (!validation.left_out.empty()) say(validation.left_out);
    if (settings.bleu.empty()) settings.bleu = usual_bleu(validation.references);
  }
  loop.config = config_of(model_settings, settings, data, choice);
  loop.identity = identity_of(model_settings, settings, data, pairs, validation);

  std::optional<TokenGuide> guide;
  if (settings.guide > 0) {
    say("Guide  an aligner learns from the pairs");
    guide = TokenGuide::learn(open, tokenizers, settings.longest_text, context);
  }
  BatchSettings ends = ends_of(*tokenizers.target);
  ends.guide_shift = settings.guide_shift;
  Feed feed(PairBatches(open(), tokenizers.source, tokenizers.target,
                        {.tokens = settings.batch_tokens,
                         .sentences = settings.batch_sentences,
                         .longest = settings.longest_text,
                         .seed = settings.seed,
                         .source_end = true}),
            pairs.count());
  TrainingTask task{.parameters = parameters, .optimizer = *optimizer};
  Batch batch;  // until its step has ended
  task.loss = [&](Tape& tape, const PartInfo& info) -> LossPart {
    std::vector<SequencePair> taken = feed.take();
    const RandomKey key = info.key.at(static_cast<std::uint64_t>(info.part));
    cut_again(taken, tokenizers, settings, key);
    if (guide) guide->add_to(taken);
    batch = make_batch(taken, ends);
    const LossOptions options{
        .label_smoothing = settings.label_smoothing, .training = true, .key = key, .guide = settings.guide};
    return {model->loss(tape, batch, options).sum, static_cast<double>(batch.target_count)};
  };
  task.epochs = [&] { return feed.epochs(); };
  task.position = [&] { return feed.position(); };
  task.seek = [&](std::string_view position) { feed.seek(position); };
  task.on_update = run.on_update;
  task.on_report = run.on_report;
  task.on_validation = run.on_validation;

  Batch looked_at;
  if (model->attention_shape().layers > 0) {
    const std::vector<SequencePair> some =
        validation.pairs.empty()
            ? some_pairs(*open(), tokenizers, {settings.longest_text + 1, settings.longest_text + 1})
            : std::vector(
                  validation.pairs.begin(),
                  validation.pairs.begin() + static_cast<std::ptrdiff_t>(std::min(kLookedAt, validation.pairs.size())));
    looked_at = make_batch(some, ends);
    task.health = [&] { return attention_health(*model, looked_at); };
  }
  if (!validation.pairs.empty()) {
    task.validate = [&]() -> Validation {
      const std::vector<Hypotheses> found =
          search_all(*model, validation.pairs,
                     {.begin = ends.begin, .end = ends.end, .beam = settings.beam, .penalty = settings.length_penalty},
                     settings.batch_tokens, context);
      std::vector<std::string> written;
      Bleu bleu({.tokenizer = bleu_tokenizer(settings.bleu), .lowercase = settings.lower});
      for (std::size_t i = 0; i < found.size(); ++i) {
        written.push_back(tokenizers.target->decode(found[i].at(0).words));
        bleu.add(written[i], validation.references[i]);
      }
      const std::size_t shown = validation.pairs.size() / 2;
      return {.loss = mean_loss(*model, validation, ends, settings.batch_tokens, context),
              .score = bleu.score().score,
              .sample = text(validation.sources[shown], " → ", written[shown])};
    };
  } else {
    loop.valid_every = {};
  }
  return train(loop, task, context);
}

}  // namespace regard
