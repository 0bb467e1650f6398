#include "tasks/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/check.h"
#include "data/corpus.h"
#include "io/json.h"
#include "view/line_chart.h"

namespace regard {
namespace {

// Everything that is counted of some sentences.
class Counts {
 public:
  explicit Counts(const BleuSettings& settings)
      : bleu(settings),
        chrf({.lowercase = settings.lowercase}),
        chrf_words({.word_order = 2, .lowercase = settings.lowercase}) {}

  void add(const std::string& written, const std::string& reference, const Translator::Result* forced) {
    bleu.add(written, reference);
    chrf.add(written, reference);
    chrf_words.add(written, reference);
    ++sentences;
    exact += written == reference ? 1 : 0;
    if (forced == nullptr) return;
    log_probability += forced->log_probability;
    tokens += static_cast<std::int64_t>(forced->tokens.size()) + 1;
  }
  std::optional<double> loss() const {
    if (tokens == 0) return std::nullopt;
    return -log_probability / static_cast<double>(tokens);
  }

  Bleu bleu;
  Chrf chrf, chrf_words;
  std::int64_t sentences = 0, exact = 0, tokens = 0;
  double log_probability = 0;
};

std::int64_t words_of(const std::string& source) {
  return static_cast<std::int64_t>(bleu_words(source, {.tokenizer = BleuTokenizer::kChinese}).size());
}

std::size_t class_of(std::int64_t length, const EvaluationSettings& settings) {
  const std::int64_t number = std::max<std::int64_t>(length - 1, 0) / settings.class_width;
  return static_cast<std::size_t>(std::min(number, settings.most_classes - 1));
}

}  // namespace

std::string usual_bleu(std::span<const std::string> references) {
  std::size_t wide = 0, all = 0;  // most of the bytes are of letters of three bytes, as Han characters are
  for (const std::string& text : references) {
    for (const char byte : text) {
      const auto value = static_cast<unsigned char>(byte);
      wide += value >= 0xE3 && value <= 0xE9 ? 3u : 0u;
      ++all;
    }
  }
  return 2 * wide > all ? "zh" : "13a";
}

TestSet read_test_set(const PairFiles& files, const Context& context) {
  TestSet set;
  PairReader reader(files);
  for (LinePair pair; reader.next(pair);) {
    if (set.lines.size() % 1024 == 0) stop_if_asked(context);
    set.sources.push_back(std::move(pair.source));
    set.references.push_back(std::move(pair.target));
    set.lines.push_back(pair.line);
  }
  set.read = reader.report().read;
  if (reader.report().dropped() > 0) set.left_out = reader.report().text();
  check(!set.lines.empty(), "evaluation: ", no_pair_text(reader));
  return set;
}

TestSet builtin_test_set(const std::string& pair, std::int64_t sentences, std::uint64_t seed, const Context& context) {
  const Corpus corpus(pair, seed, Corpus::Split::kTest);
  TestSet set;
  set.read = static_cast<std::uint64_t>(sentences);
  for (std::uint64_t line = 0; line < set.read; ++line) {
    stop_if_asked(context);
    Corpus::Example example = corpus.at(line);
    set.sources.push_back(std::move(example.source.text));
    set.references.push_back(std::move(example.target.text));
    set.lines.push_back(line + 1);
  }
  return set;
}

std::vector<std::string> read_hypotheses(const std::string& path, const TestSet& set) {
  LineReader reader(path);
  std::vector<std::string> written;
  std::uint64_t lines = 0;
  for (LineReader::Line line; reader.next(line); ++lines) {
    check(!line.too_long, reader.name(), ":", line.number, ": a line of ", line.bytes, " bytes, expected at most ",
          kLongestLine);
    if (written.size() < set.lines.size() && line.number == set.lines[written.size()]) written.push_back(line.text);
  }
  check(lines == set.read, "evaluation: ", reader.name(), " has ", lines, " lines, expected ", set.read,
        ", one a sentence of the test");
  return written;
}

std::string to_text(const LengthClass& range) {
  return range.most == 0 ? fmt::format("{}…", range.least) : fmt::format("{}–{}", range.least, range.most);
}

std::optional<double> TranslationScores::perplexity() const {
  if (!loss) return std::nullopt;
  return std::exp(*loss);
}

TranslationScores evaluate(const TestSet& set, std::span<const std::string> written, const EvaluationSettings& settings,
                           std::span<const Translator::Result> forced) {
  check(written.size() == set.references.size(), "evaluation: ", written.size(), " translations of ",
        set.references.size(), " sentences");
  check(forced.empty() || forced.size() == written.size(), "evaluation: ", forced.size(), " results of ",
        written.size(), " sentences");
  check(settings.lengths.empty() || settings.lengths.size() == written.size(), "evaluation: ", settings.lengths.size(),
        " lengths of ", written.size(), " sentences");
  check(settings.class_width >= 1 && settings.most_classes >= 1, "evaluation: classes of ", settings.class_width,
        " words, ", settings.most_classes, " of them: expected 1 or more");
  const BleuSettings bleu{
      .tokenizer = bleu_tokenizer(settings.bleu.empty() ? usual_bleu(set.references) : settings.bleu),
      .lowercase = settings.lowercase};
  Counts all(bleu);
  std::vector<Counts> classes(static_cast<std::size_t>(settings.most_classes), Counts(bleu));
  for (std::size_t i = 0; i < written.size(); ++i) {
    const Translator::Result* given = forced.empty() ? nullptr : &forced[i];
    all.add(written[i], set.references[i], given);
    const std::int64_t length = settings.lengths.empty() ? words_of(set.sources[i]) : settings.lengths[i];
    classes[class_of(length, settings)].add(written[i], set.references[i], given);
  }
  TranslationScores out{.sentences = all.sentences,
                        .exact = all.exact,
                        .bleu = all.bleu.score(),
                        .chrf = all.chrf.score(),
                        .chrf_words = all.chrf_words.score(),
                        .bleu_signature = all.bleu.signature(),
                        .chrf_signature = all.chrf.signature(),
                        .chrf_words_signature = all.chrf_words.signature(),
                        .loss = all.loss(),
                        .tokens = all.tokens};
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const Counts& each = classes[i];
    if (each.sentences == 0) continue;
    const std::int64_t begin = static_cast<std::int64_t>(i) * settings.class_width;
    out.classes.push_back({.least = begin + 1,
                           .most = i + 1 == classes.size() ? 0 : begin + settings.class_width,
                           .sentences = each.sentences,
                           .exact = each.exact,
                           .bleu = each.bleu.score().score,
                           .chrf = each.chrf.score().score,
                           .loss = each.loss()});
  }
  return out;
}

std::vector<Translator::Result> force_references(const Translator& translator, const TestSet& set,
                                                 const Context& context) {
  std::vector<TextPair> pairs;
  for (std::size_t i = 0; i < set.sources.size(); ++i) pairs.push_back({set.sources[i], set.references[i]});
  return translator.force(pairs, {}, context);
}

TranslationScores evaluate(const Translator& translator, const TestSet& set, const EvaluationSettings& settings,
                           const Context& context, std::vector<std::string>* written,
                           std::vector<Translator::Translation>* found) {
  std::vector<std::string> texts;
  std::vector<Translator::Translation> all = translator.translate(set.sources, settings.search, context);
  texts.reserve(all.size());
  for (const Translator::Translation& each : all) texts.push_back(each.best.empty() ? "" : each.best[0].text);
  if (found != nullptr) *found = std::move(all);
  const TranslationScores result = evaluate(set, texts, settings, force_references(translator, set, context));
  if (written != nullptr) *written = std::move(texts);
  return result;
}

std::string to_text(const TranslationScores& result) {
  std::string out;
  const auto put = [&out]<class... Parts>(fmt::format_string<Parts...> format, Parts&&... parts) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Parts>(parts)...);
  };
  const auto percent = [](std::int64_t part, std::int64_t whole) {
    return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  put("{}\n{}\n{}\n", result.bleu.text(result.bleu_signature), result.chrf.text(result.chrf_signature),
      result.chrf_words.text(result.chrf_words_signature));
  if (result.loss) {
    put("loss {:.4f} per token, perplexity {:.3f} ({} tokens)\n", *result.loss, *result.perplexity(), result.tokens);
  }
  put("exact {} of {} ({:.1f} %)\n\n", result.exact, result.sentences, percent(result.exact, result.sentences));
  put("{:>12}  {:>9}  {:>6}  {:>6}  {:>7}", "source words", "sentences", "BLEU", "chrF", "exact");
  put("{}\n", result.loss ? "    loss" : "");
  for (const LengthClass& each : result.classes) {
    put("{:>12}  {:>9}  {:>6.2f}  {:>6.2f}  {:>5.1f} %", to_text(each), each.sentences, each.bleu, each.chrf,
        percent(each.exact, each.sentences));
    if (each.loss) put("  {:>6.3f}", *each.loss);
    put("\n");
  }
  return out;
}

std::string to_json(const TranslationScores& result) {
  JsonWriter out;
  out.begin_object().key("sentences").value(result.sentences).key("exact").value(result.exact);
  out.key("bleu").begin_object().key("score").value(result.bleu.score);
  out.key("signature").value(result.bleu_signature).key("precisions").begin_array();
  for (const double each : result.bleu.precisions) out.value(each);
  out.end_array().key("brevity_penalty").value(result.bleu.brevity);
  out.key("hypothesis_words").value(result.bleu.hypothesis_words);
  out.key("reference_words").value(result.bleu.reference_words).end_object();
  const auto chrf = [&out](const char* key, const ChrfScore& score, const std::string& signature) {
    out.key(key).begin_object().key("score").value(score.score).key("signature").value(signature).end_object();
  };
  chrf("chrf", result.chrf, result.chrf_signature);
  chrf("chrf++", result.chrf_words, result.chrf_words_signature);
  if (result.loss) {
    out.key("loss").value(*result.loss).key("perplexity").value(*result.perplexity());
    out.key("tokens").value(result.tokens);
  }
  out.key("by_length").begin_array();
  for (const LengthClass& each : result.classes) {
    out.begin_object().key("least").value(each.least);
    if (each.most > 0) out.key("most").value(each.most);
    out.key("sentences").value(each.sentences).key("exact").value(each.exact);
    out.key("bleu").value(each.bleu).key("chrf").value(each.chrf);
    if (each.loss) out.key("loss").value(*each.loss);
    out.end_object();
  }
  return out.end_array().end_object().text();
}

std::string to_svg(const TranslationScores& result, const std::string& title) {
  ChartLine bleu{"BLEU", {}}, chrf{"chrF", {}};
  LineChart chart{
      .title = title, .across = "words of the source; below: how many sentences", .up = "score", .from_zero = true};
  for (const LengthClass& each : result.classes) {
    const auto x = static_cast<double>(chart.categories.size());
    bleu.points.emplace_back(x, each.bleu);
    chrf.points.emplace_back(x, each.chrf);
    chart.categories.push_back(fmt::format("{}\n{}", to_text(each), each.sentences));
  }
  return line_chart({bleu, chrf}, chart);
}

}  // namespace regard
