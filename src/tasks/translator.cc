#include "tasks/translator.h"

#include <cmath>

#include "autograd/int8_weights.h"
#include "base/check.h"
#include "data/prepare.h"
#include "io/json.h"
#include "io/model_file.h"
#include "tasks/translation_pairs.h"

namespace regard {

struct Translator::Impl {
  ModelSettings settings;
  TokenizerPair tokenizers;
  Parameters parameters;
  std::unique_ptr<SequenceModel> model;
  BatchSettings ends;
};

Translator::Translator(const std::string& path, bool int8) : impl_(std::make_unique<Impl>()) {
  const ModelFile file = load_model(disk(), path);
  const Json config = Json::parse(file.config(), text("config of '", path, "'"));
  const std::string task(config.at("task").text());
  check(task == "translate", "'", path, "' is a model for '", task, "', expected 'translate'");
  for (const auto& [key, value] : config.at("model").object()) set(impl_->settings, key, value.text());
  const std::string &source_bytes = file.tokenizer("source").bytes, &target_bytes = file.tokenizer("target").bytes;
  impl_->tokenizers.source = Tokenizer::from(source_bytes);
  impl_->tokenizers.target = source_bytes == target_bytes ? impl_->tokenizers.source : Tokenizer::from(target_bytes);
  const auto fits = [&](const Tokenizer& tokenizer, std::int64_t words, const char* side) {
    check(tokenizer.size() == words, "'", path, "': the ", side, "'s tokenizer has ", tokenizer.size(),
          " ids, the model ", words);
  };
  fits(*impl_->tokenizers.source, impl_->settings.source_words, "source");
  fits(*impl_->tokenizers.target, impl_->settings.target_words, "target");
  impl_->ends = ends_of(*impl_->tokenizers.target);
  ends_of(*impl_->tokenizers.source);
  impl_->model = make_model(Builder::blank(impl_->parameters), impl_->settings);
  file.fill(impl_->parameters);
  if (int8) use_int8(impl_->parameters);
}
Translator::~Translator() = default;
Translator::Translator(Translator&&) noexcept = default;
Translator& Translator::operator=(Translator&&) noexcept = default;

const ModelSettings& Translator::model_settings() const { return impl_->settings; }

AttentionShape Translator::attention_shape() const { return impl_->model->attention_shape(); }
const Tokenizer& Translator::source() const { return *impl_->tokenizers.source; }
const Tokenizer& Translator::target() const { return *impl_->tokenizers.target; }

std::vector<Translator::Translation> Translator::translate(std::span<const std::string> lines, const Settings& settings,
                                                           const Context& context) const {
  const ContextScope scope(context);
  std::vector<SequencePair> pairs;
  for (const std::string& line : lines) pairs.push_back({.id = pairs.size(), .source = source_ids(source(), line)});
  const std::vector<Hypotheses> found = search_all(*impl_->model, pairs,
                                                   {.begin = impl_->ends.begin,
                                                    .end = impl_->ends.end,
                                                    .beam = settings.beam,
                                                    .best = settings.best,
                                                    .penalty = settings.length_penalty},
                                                   settings.batch_tokens, context);
  std::vector<Translation> made;
  for (const Hypotheses& each : found) {
    Translation& one = made.emplace_back();
    for (const Hypothesis& h : each) {
      one.best.push_back({target().decode(h.words), target().places(h.words), h.log_probability, h.score});
    }
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
  Tape tape;
  for_each_batch(pairs, settings.batch_tokens, impl_->ends, [&](const Batch& batch, const auto& number) {
    stop_if_asked(context);
    const Tensor each = impl_->model->loss(tape, batch).log_probabilities;
    for (std::int64_t row = 0; row < batch.size(); ++row) {
      Result& result = results[number(row)];
      const std::int64_t steps = target_steps(batch, row);
      for (std::int64_t t = 0; t < steps; ++t) {
        result.log_probability += static_cast<double>(each.data<float>()[t * batch.size() + row]);
      }
      result.score = result.log_probability / std::pow(static_cast<double>(steps), settings.length_penalty);
    }
    tape.reset();
  });
  return results;
}

std::vector<Translator::Looked> Translator::look(std::span<const std::string> lines, std::span<const Result> results,
                                                 std::int64_t batch_tokens, const Context& context) const {
  check(lines.size() == results.size(), "look: ", lines.size(), " lines and ", results.size(), " results");
  const ContextScope scope(context);
  std::vector<Looked> made(lines.size());
  std::vector<SequencePair> pairs;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    made[i].source = source().encode(lines[i]);
    made[i].target = results[i].tokens;
    pairs.push_back({i, ids_of(made[i].source), ids_of(made[i].target)});
    pairs.back().source.push_back(source().special().end);
    made[i].weights = Tensor::zeros({0, 0, static_cast<std::int64_t>(made[i].target.size()) + 1,
                                     static_cast<std::int64_t>(made[i].source.size()) + 1});
  }
  for_each_batch(pairs, batch_tokens, impl_->ends, [&](const Batch& batch, const auto& number) {
    stop_if_asked(context);
    std::vector<Tensor> maps = impl_->model->all_attention(batch);
    for (std::size_t row = 0; row < maps.size(); ++row) {
      made[number(static_cast<std::int64_t>(row))].weights = std::move(maps[row]);
    }
  });
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
