#include "tasks/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "base/budget.h"
#include "base/check.h"
#include "base/flops.h"
#include "data/corpus.h"
#include "io/json.h"
#include "models/lines.h"
#include "tasks/alignment.h"
#include "tasks/links.h"
#include "tasks/local_cost.h"
#include "tasks/train_translation.h"
#include "tasks/translation_pairs.h"
#include "view/line_chart.h"
#include "view/plot.h"
#include "view/terminal.h"

namespace regard {
namespace {

constexpr std::uint64_t kTestSeed = 1'000'003;  // other sentences of the test than those of validations
constexpr std::int64_t kValidations = 6;        // of a run
constexpr std::int64_t kWhole = 1'000'000;      // tokens: no line is cut, what is beyond training is to be seen

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1));
}

std::string line_of(const std::string& mechanism) { return mechanism == "uniform" ? "dot | uniform" : mechanism; }

struct Place {
  ModelSettings model;
  std::string where;
};

// The model with a mechanism put into its attentions.
Place placed(const ModelSettings& model, const std::string& mechanism, CompareWhere where) {
  Place made{model, ""};
  const bool deep = model.family == "transformer", recurrent = !deep && model.family != "convs2s";
  if (mechanism == "none") {
    check(recurrent, "compare: 'none' is for recurrent models, this one is a ", model.family);
    made.model.family = "seq2seq";
    made.model.attention = "";
    made.where = "none";
    return made;
  }
  check(model.family != "seq2seq", "compare: a model without attention (", model.family, ") has no place for '",
        mechanism, "'; choose gru-attention or luong");
  const std::string line = line_of(mechanism);
  const auto put = [&](std::string ModelSettings::*setting, const char* name) {
    made.model.*setting = line;
    made.where += (made.where.empty() ? "" : " ") + std::string(name);
  };
  check(deep || where != CompareWhere::kSelf, "compare: ", model.family,
        " has no self-attention; choose --where cross");
  if (deep && where != CompareWhere::kCross) {
    put(&ModelSettings::encoder_attention, "encoder");
    if (!needs_length(line)) put(&ModelSettings::decoder_attention, "decoder");
  }
  if (!deep || where == CompareWhere::kCross || (where == CompareWhere::kAll && !compares_places(line))) {
    put(&ModelSettings::attention, "cross");
  }
  return made;
}

std::int64_t weights_of(ModelSettings model) {
  Parameters parameters;
  if (model.source_words == 0) model.source_words = model.target_words = 8;
  make_model(Builder(parameters, RandomKey(0)), model);
  return parameters.count();
}

std::string file_name(std::string_view mechanism) {  // "dot | local_m:5" -> "dot-local_m-5"
  std::string name;
  for (const char letter : mechanism) {
    const bool fits = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                      (letter >= '0' && letter <= '9') || letter == '_' || letter == '.' || letter == '=';
    if (fits) {
      name += letter;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  while (name.ends_with('-')) name.pop_back();
  return name;
}

TranslationSettings training_of(const CompareSettings& settings) {
  const Count budget = parse_count(settings.budget, "--budget");
  check(budget.unit == Count::Unit::kUpdates || budget.unit == Count::Unit::kSeconds, "--budget: '", settings.budget,
        "', expected a time or a number of updates, such as 60s or 200u");
  TranslationSettings training = settings.training;
  const auto share = [&](double parts) {
    const double amount = budget.amount / parts;
    return budget.unit == Count::Unit::kUpdates ? fmt::format("{}u", std::max<std::int64_t>(1, std::llround(amount)))
                                                : fmt::format("{}s", amount);
  };
  training.stop_after = share(1);
  training.valid_every = training.save_every = share(kValidations);
  training.report_every = budget.unit == Count::Unit::kUpdates ? share(2 * kValidations) : "10u";
  training.best_by = "loss";
  return training;
}

// Everything that makes two comparisons comparable, as text.
std::vector<Setting> all_settings(const CompareSettings& settings) {
  std::vector<Setting> all = {{"builtin", settings.builtin},
                              {"budget", settings.budget},
                              {"where", to_text(settings.where)},
                              {"lines", std::to_string(settings.lines)},
                              {"tests", std::to_string(settings.tests)}};
  for (const auto& [key, value] : list(settings.model)) all.emplace_back("model." + key, value);
  for (const auto& [key, value] : translation_table().list(settings.training))
    all.emplace_back("training." + key, value);
  return all;
}

std::string settings_json(const CompareSettings& settings) {
  JsonWriter out;
  out.begin_object();
  for (const auto& [key, value] : all_settings(settings)) out.key(key).value(value);
  return out.end_object().text();
}

void save(const std::string& path, std::string_view bytes) {
  replace_file(disk(), path, [&](FileWriter& out) { out.write(bytes); });
}

// The folder is this comparison's, or becomes it.
void claim_folder(const CompareSettings& settings) {
  check(!settings.folder.empty(), "compare: where should the results go?");
  std::error_code error;
  std::filesystem::create_directories(settings.folder, error);
  if (error) fail(ErrorKind::kFile, "compare: cannot make the folder '", settings.folder, "': ", error.message());
  const std::string path = settings.folder + "/settings.json";
  if (!exists(disk(), path)) {
    save(path, settings_json(settings) + "\n");
    return;
  }
  const Json there = Json::parse(read_file(disk(), path), text("'", path, "'"));
  for (const auto& [key, value] : all_settings(settings)) {
    const std::optional<Json> old = there.find(key);
    const std::string before(old ? old->text() : "not known");
    check(before == value, "compare: '", settings.folder, "' holds a comparison with other settings: ", key, " is ",
          before.empty() ? "''" : before, " there and ", value.empty() ? "''" : value, " here; choose another --out");
  }
}

void write_class(JsonWriter& out, const LengthClass& each) {
  out.begin_object().key("least").value(each.least).key("most").value(each.most);
  out.key("sentences").value(each.sentences).key("exact").value(each.exact);
  out.key("bleu").value(each.bleu).key("chrf").value(each.chrf);
  if (each.loss) out.key("loss").value(*each.loss);
  out.end_object();
}

void write_one(JsonWriter& out, const Compared& one) {
  const auto maybe = [&out](const char* key, const std::optional<double>& value) {
    if (value) out.key(key).value(*value);
  };
  out.begin_object().key("mechanism").value(one.mechanism).key("where").value(one.where);
  out.key("loss").value(one.loss).key("bleu").value(one.bleu).key("chrf").value(one.chrf);
  maybe("bleu_within", one.bleu_within);
  maybe("bleu_beyond", one.bleu_beyond);
  maybe("aer", one.aer);
  maybe("entropy", one.entropy);
  out.key("tokens_per_second").value(one.tokens_per_second).key("memory").value(one.memory);
  out.key("parameters").value(one.parameters).key("updates").value(one.updates).key("seconds").value(one.seconds);
  maybe("flops", one.flops);
  maybe("steps", one.steps);
  maybe("place_error", one.place_error);
  maybe("cheaper_from", one.cheaper_from);
  out.key("by_length").begin_array();
  for (const LengthClass& each : one.classes) write_class(out, each);
  out.end_array().key("course").begin_array();
  for (const Compared::Moment& each : one.course) {
    out.begin_object().key("seconds").value(each.seconds).key("update").value(each.updates);
    out.key("bleu").value(each.bleu).key("loss").value(each.loss).end_object();
  }
  out.end_array().end_object();
}

Compared read_one(const Json& json) {
  const auto maybe = [&json](const char* key) -> std::optional<double> {
    const std::optional<Json> found = json.find(key);
    if (!found) return std::nullopt;
    return found->number();
  };
  Compared one{.mechanism = std::string(json.at("mechanism").text()),
               .where = std::string(json.at("where").text()),
               .loss = json.at("loss").number(),
               .bleu = json.at("bleu").number(),
               .chrf = json.at("chrf").number(),
               .bleu_within = maybe("bleu_within"),
               .bleu_beyond = maybe("bleu_beyond"),
               .aer = maybe("aer"),
               .entropy = maybe("entropy"),
               .tokens_per_second = json.at("tokens_per_second").number(),
               .memory = json.at("memory").integer(0),
               .parameters = json.at("parameters").integer(0),
               .updates = json.at("updates").integer(0),
               .seconds = json.at("seconds").number(),
               .flops = maybe("flops"),
               .steps = maybe("steps"),
               .place_error = maybe("place_error"),
               .cheaper_from = maybe("cheaper_from")};
  for (const Json& each : json.at("by_length").array()) {
    LengthClass& made = one.classes.emplace_back();
    made.least = each.at("least").integer(0);
    made.most = each.at("most").integer(0);
    made.sentences = each.at("sentences").integer(0);
    made.exact = each.at("exact").integer(0);
    made.bleu = each.at("bleu").number();
    made.chrf = each.at("chrf").number();
    if (const std::optional<Json> loss = each.find("loss")) made.loss = loss->number();
  }
  for (const Json& each : json.at("course").array()) {
    one.course.push_back(
        {each.at("seconds").number(), each.at("update").number(), each.at("bleu").number(), each.at("loss").number()});
  }
  return one;
}

// What the diary of a run says.
void read_course(const std::string& path, Compared& one) {
  const PlotRun run = parse_metrics(read_file(disk(), path), path);
  const auto values = [&run](const char* name) {
    const auto found = run.series.find(name);
    return found == run.series.end() ? std::vector<PlotPoint>() : found->second;
  };
  const std::vector<PlotPoint> seconds = values("validation.seconds"), bleu = values("validation.score"),
                               loss = values("validation.loss");
  for (std::size_t i = 0; i < std::min({seconds.size(), bleu.size(), loss.size()}); ++i) {
    one.course.push_back({seconds[i].value, seconds[i].update, bleu[i].value, loss[i].value});
  }
  std::vector<double> speeds;
  for (const PlotPoint& each : values("report.tokens_per_second")) speeds.push_back(each.value);
  if (speeds.empty()) return;
  std::nth_element(speeds.begin(), speeds.begin() + static_cast<std::ptrdiff_t>(speeds.size() / 2), speeds.end());
  one.tokens_per_second = speeds[speeds.size() / 2];
}

// BLEU of those sentences whose length is in a range.
std::optional<double> bleu_of(const TestSet& set, const std::vector<std::string>& written,
                              const std::vector<std::int64_t>& lengths, const std::string& tokenizer,
                              const std::function<bool(std::int64_t)>& counts) {
  Bleu bleu({.tokenizer = bleu_tokenizer(tokenizer)});
  bool any = false;
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (!counts(lengths[i])) continue;
    any = true;
    bleu.add(written[i], set.references[i]);
  }
  if (!any) return std::nullopt;
  return bleu.score().score;
}

// What a pair costs: work a token, and how much of it has to wait for what came before.
void measure_cost(const Translator& translator, const TestSet& set, Compared& one, const Context& context) {
  std::vector<TextPair> pairs;
  double source = 0, target = 0;
  for (std::size_t i = 0; i < set.sources.size(); ++i) {
    pairs.push_back({set.sources[i], set.references[i]});
    source += static_cast<double>(translator.source().encode(set.sources[i]).size() + 1);
    target += static_cast<double>(translator.target().encode(set.references[i]).size() + 1);
  }
  const FlopCount count;
  translator.force(pairs, {.longest_line = kWhole}, context);
  one.flops = count.flops() / target;
  const ModelSettings& model = translator.model_settings();
  const bool recurrent = model.family != "transformer" && model.family != "convs2s";
  one.steps = recurrent ? (source + target) / static_cast<double>(pairs.size())
                        : static_cast<double>(model.encoder_layers + model.decoder_layers);
}

void evaluate_one(const CompareSettings& settings, const std::string& path, Compared& one, const Context& context) {
  const Translator translator(path);
  one.parameters = weights_of(translator.model_settings());
  const TestSet set = builtin_test_set(settings.builtin, settings.tests, kTestSeed);
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i < set.sources.size(); ++i) {
    lengths.push_back(static_cast<std::int64_t>(std::max(translator.source().encode(set.sources[i]).size(),
                                                         translator.target().encode(set.references[i]).size())));
  }
  EvaluationSettings how{.search = {.beam = settings.training.beam,
                                    .length_penalty = settings.training.length_penalty,
                                    .longest_line = kWhole,
                                    .batch_tokens = settings.training.batch_tokens},
                         .bleu = settings.training.bleu,
                         .lengths = lengths};
  if (how.bleu.empty()) how.bleu = usual_bleu(set.references);
  std::vector<std::string> written;
  const TranslationScores scores = evaluate(translator, set, how, context, &written);
  one.loss = scores.loss.value();
  one.bleu = scores.bleu.score;
  one.chrf = scores.chrf.score;
  one.classes = scores.classes;
  const std::int64_t longest = settings.training.longest_text;
  one.bleu_within = bleu_of(set, written, lengths, how.bleu, [=](std::int64_t length) { return length <= longest; });
  one.bleu_beyond = bleu_of(set, written, lengths, how.bleu, [=](std::int64_t length) { return length > longest; });
  if (const auto looked = look_at_builtin(translator, settings.builtin, settings.tests, kTestSeed, context)) {
    one.aer = looked->aer;
    one.entropy = looked->entropy;
    one.place_error = looked->place_error;
  }
  measure_cost(translator, set, one, context);
  if (one.mechanism == "none" || !looks_at_a_part(line_of(one.mechanism))) return;
  const ModelSettings& model = translator.model_settings();
  const std::int64_t heads = model.family == "transformer" ? model.heads : 1;
  if (const auto from =
          cheaper_from(line_of(one.mechanism), {.heads = heads, .width = model.hidden / heads}, context)) {
    one.cheaper_from = static_cast<double>(*from);
  }
}

Compared train_one(const CompareSettings& settings, const std::string& mechanism, const CompareEvents& events,
                   const Context& context) {
  const Place place = placed(settings.model, mechanism, settings.where);
  const std::string path = settings.folder + "/" + file_name(mechanism) + ".model";
  Compared one{.mechanism = mechanism, .where = place.where};
  Context mine = context;
  mine.log = {};
  mine.memory_limit = 0;  // inside there is the one that counts
  TranslationRun run{.path = path, .resume = true};
  run.on_update = events.on_update;
  {
    Context counted = context;
    if (counted.memory_limit == 0) counted.memory_limit = std::numeric_limits<std::uint64_t>::max();
    const ContextScope scope(counted);
    try {
      const LoopResult result = train_translation({.builtin = settings.builtin,
                                                   .builtin_lines = settings.lines,
                                                   .builtin_tests = std::min<std::int64_t>(settings.tests, 100)},
                                                  place.model, training_of(settings), run, mine);
      one.updates = result.reached.updates;
      one.seconds = result.reached.seconds;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kCancelled) {
        throw Error(error.kind(), text("compare: '", mechanism, "': ", error.what()));
      }
      fail(ErrorKind::kCancelled, "compare: stopped in '", mechanism, "'; the same command goes on");
    }
    one.memory = static_cast<std::int64_t>(current_budget()->most());
  }
  read_course(metrics_of(path), one);
  evaluate_one(settings, path, one, context);
  return one;
}

std::string optional_text(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "–";
}

std::vector<std::vector<std::string>> table_of(const Comparison& found) {
  const std::int64_t longest = found.settings.training.longest_text;
  std::vector<std::vector<std::string>> rows = {{"mechanism", "where", "loss", "BLEU", fmt::format("BLEU ≤{}", longest),
                                                 fmt::format("BLEU >{}", longest), "chrF", "AER", "entropy", "tokens/s",
                                                 "MB", "parameters", "Mflop", "steps", "updates"}};
  const auto any = [&](std::optional<double> Compared::*of) {
    return std::any_of(found.all.begin(), found.all.end(),
                       [of](const Compared& each) { return (each.*of).has_value(); });
  };
  const bool places = any(&Compared::place_error), parts = any(&Compared::cheaper_from);
  if (places) rows[0].emplace_back("|p−gold|");
  if (parts) rows[0].emplace_back("cheaper from");
  for (const Compared& each : found.all) {
    rows.push_back({each.mechanism, each.where, fmt::format("{:.3f}", each.loss), fmt::format("{:.2f}", each.bleu),
                    optional_text(each.bleu_within, 2), optional_text(each.bleu_beyond, 2),
                    fmt::format("{:.2f}", each.chrf), optional_text(each.aer, 3), optional_text(each.entropy, 3),
                    fmt::format("{:.0f}", each.tokens_per_second),
                    fmt::format("{:.1f}", static_cast<double>(each.memory) / 1e6), fmt::format("{}", each.parameters),
                    each.flops ? fmt::format("{:.2f}", *each.flops / 1e6) : "–", optional_text(each.steps, 1),
                    fmt::format("{}", each.updates)});
    if (places) rows.back().push_back(optional_text(each.place_error, 2));
    if (parts) rows.back().push_back(optional_text(each.cheaper_from, 0));
  }
  return rows;
}

void write_results(const Comparison& found) {
  const std::string& folder = found.settings.folder;
  save(folder + "/compare.json", to_json(found) + "\n");
  save(folder + "/lengths.svg", lengths_svg(found));
  save(folder + "/time.svg", course_svg(found));
  save(folder + "/compare.md", to_markdown(found));
}

PairUnits units_of(const Corpus::Example& example) {
  PairUnits units;
  for (const Corpus::Span& word : example.source.words) units.source.push_back({word.begin, word.end});
  for (const Corpus::Span& word : example.target.words) units.target.push_back({word.begin, word.end});
  return units;
}

// Of each token of the target the middle of the tokens of the source that it comes from; none: from nothing.
std::vector<std::optional<double>> middles(const Corpus::Example& example, std::span<const Token> source,
                                           std::span<const Token> target) {
  const auto in = [](const Token& token, const Corpus::Span& word) {
    return token.begin < word.end && word.begin < token.end;
  };
  std::vector<std::optional<double>> made;
  for (const Token& token : target) {
    double sum = 0, count = 0;
    for (const auto& [from, to] : example.alignment) {
      if (!in(token, example.target.words[static_cast<std::size_t>(to)])) continue;
      for (std::size_t j = 0; j < source.size(); ++j) {
        if (!in(source[j], example.source.words[static_cast<std::size_t>(from)])) continue;
        sum += static_cast<double>(j);
        ++count;
      }
    }
    made.push_back(count == 0 ? std::nullopt : std::optional(sum / count));
  }
  return made;
}

GoldLinks gold_of(const Corpus::Example& example) {
  GoldLinks gold;
  for (const Corpus::Example::Link& link : example.alignment) {
    gold.possible.push_back({link.first, link.second});
    if (example.is_sure(link)) gold.sure.push_back(gold.possible.back());
  }
  return gold;
}

}  // namespace

CompareWhere compare_where(std::string_view name) {
  for (const CompareWhere each : {CompareWhere::kCross, CompareWhere::kSelf, CompareWhere::kAll}) {
    if (to_text(each) == name) return each;
  }
  fail(ErrorKind::kInput, "compare: --where '", name, "', expected cross, self or all");
}

std::string to_text(CompareWhere where) {
  switch (where) {
    case CompareWhere::kCross:
      return "cross";
    case CompareWhere::kSelf:
      return "self";
    case CompareWhere::kAll:
      break;
  }
  return "all";
}

std::vector<std::string> compared_mechanisms(std::string_view list) {
  std::vector<std::string> all;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(';', begin), list.size());
    std::string one = trimmed(list.substr(begin, end - begin));
    if (!one.empty()) all.push_back(std::move(one));
    begin = end + 1;
  }
  check(!all.empty(), "compare: no mechanism in '", list, "', expected lines separated by semicolons");
  return all;
}

ModelSettings CompareSettings::compared_model(std::string_view name) {
  ModelSettings model = preset(name);
  if (model.family == "transformer") {
    model.encoder_layers = model.decoder_layers = 2;
    model.hidden = 128;
    model.ffn = 256;
    model.heads = 4;
  } else {
    model.embedding = 64;
    model.hidden = 128;
  }
  model.dropout = 0.1;
  return model;
}

TranslationSettings CompareSettings::compared_training() {
  TranslationSettings training;
  training.tokenizer = "words";
  training.longest_text = 20;
  training.batch_tokens = 1024;
  training.rate = 3e-3;
  training.warmup = 100;
  return training;
}

Comparison compare_translation(const CompareSettings& settings, const CompareEvents& events, const Context& context) {
  const auto say = [&](const auto&... parts) {
    if (events.say) events.say(text(parts...));
  };
  check(!settings.mechanisms.empty(), "compare: no mechanism to compare");
  check(settings.lines >= 1 && settings.tests >= 1, "compare: ", settings.lines, " lines and ", settings.tests,
        " tests, expected 1 or more");
  training_of(settings);
  const Corpus known(settings.builtin, 1, Corpus::Split::kTest);  // throws if there is no such pair
  std::set<std::string> names;
  for (const std::string& each : settings.mechanisms) {  // what is wrong should be known before hours of training
    try {
      weights_of(placed(settings.model, each, settings.where).model);
    } catch (const Error& error) {
      const std::string_view what = error.what();
      if (what.starts_with("compare: ")) throw;
      throw Error(error.kind(), text("compare: '", each, "': ", what));
    }
    check(names.insert(file_name(each)).second, "compare: '", each, "' is there twice");
  }
  claim_folder(settings);
  Comparison found{.settings = settings, .all = {}};
  for (std::size_t i = 0; i < settings.mechanisms.size(); ++i) {
    stop_if_asked(context);
    const std::string& mechanism = settings.mechanisms[i];
    const std::string path = settings.folder + "/" + file_name(mechanism) + ".json";
    if (exists(disk(), path)) {
      found.all.push_back(read_one(Json::parse(read_file(disk(), path), text("'", path, "'"))));
      check(found.all.back().mechanism == mechanism, "compare: '", path, "' is of '", found.all.back().mechanism,
            "', expected '", mechanism, "'");
      say(i + 1, "/", settings.mechanisms.size(), "  ", mechanism, ": done before");
      continue;
    }
    say(i + 1, "/", settings.mechanisms.size(), "  ", mechanism);
    found.all.push_back(train_one(settings, mechanism, events, context));
    JsonWriter out;
    write_one(out, found.all.back());
    save(path, out.text() + "\n");
    const Compared& one = found.all.back();
    say(fmt::format("     loss {:.3f}  BLEU {:.2f}  AER {}  {} updates", one.loss, one.bleu, optional_text(one.aer, 3),
                    one.updates));
    write_results(found);
  }
  write_results(found);
  return found;
}

std::string to_text(const Comparison& found) {
  const auto rows = table_of(found);
  std::vector<int> widths(rows[0].size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(static_cast<std::size_t>(widths[i] - display_width(row[i])), ' ');
      line += (i == 0 ? "" : "  ") + (i < 2 ? row[i] + blanks : blanks + row[i]);
    }
    out += line + "\n";
  }
  return out;
}

std::string to_markdown(const Comparison& found) {
  const CompareSettings& settings = found.settings;
  std::string out = fmt::format(
      "# Mechanisms compared\n\nBuilt-in corpus {}, {} lines, seed {}; {} a mechanism; {}, hidden {}, {} sentences "
      "tested.\nTrained on sentences of up to {} tokens; the test also has longer ones.\n\n",
      settings.builtin, settings.lines, settings.training.seed, settings.budget, settings.model.family,
      settings.model.hidden, settings.tests, settings.training.longest_text);
  const auto rows = table_of(found);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < rows[r].size(); ++i) {
      std::string cell = i == 0 && r > 0 ? "`" + rows[r][i] + "`" : rows[r][i];
      for (std::size_t at = 0; (at = cell.find('|', at)) != std::string::npos; at += 2) cell.insert(at, "\\");
      out += (i == 0 ? "| " : " | ") + cell;
    }
    out += " |\n";
    if (r > 0) continue;
    for (std::size_t i = 0; i < rows[0].size(); ++i) out += i < 2 ? "|---" : "|---:";
    out += "|\n";
  }
  return out +
         "\nloss: per token of the right translations, natural logarithm. AER: alignment error against the grammar's "
         "own alignment, 0 is best.\nentropy: of attention, as a share of the most there could be. tokens/s: of the "
         "target, in training. MB: tensors in training, at most.\nMflop: products and attention of a token of the "
         "target, forward. steps: one after another, to read a pair in training, on average.\n|p−gold|: how far "
         "local_p's p is from where a token comes from, in tokens. cheaper from: as many keys, timed forward, looking "
         "at a part takes less time than looking at all.\n\n![BLEU by length](lengths.svg)\n\n![BLEU by time]"
         "(time.svg)\n";
}

std::string to_json(const Comparison& found) {
  JsonWriter out;
  out.begin_object().key("settings").raw(settings_json(found.settings)).key("mechanisms").begin_array();
  for (const Compared& each : found.all) write_one(out, each);
  return out.end_array().end_object().text();
}

std::string lengths_svg(const Comparison& found) {
  LineChart chart{.title = "BLEU by length",
                  .across = "tokens of the longer side; below: how many sentences",
                  .up = "BLEU",
                  .from_zero = true};
  std::vector<ChartLine> lines;
  for (const Compared& each : found.all) {
    ChartLine& line = lines.emplace_back(ChartLine{each.mechanism, {}});
    for (const LengthClass& range : each.classes) {
      const std::string name = fmt::format("{}\n{}", to_text(range), range.sentences);
      const auto at = std::find(chart.categories.begin(), chart.categories.end(), name);
      line.points.emplace_back(static_cast<double>(at - chart.categories.begin()), range.bleu);
      if (at == chart.categories.end()) chart.categories.push_back(name);
    }
  }
  // The classes are equally wide: a length within one stands between its neighbours.
  const EvaluationSettings usual;
  if (!found.all.empty() && !found.all[0].classes.empty()) {
    const std::int64_t first_class = (found.all[0].classes[0].least - 1) / usual.class_width;
    chart.mark = static_cast<double>(found.settings.training.longest_text) / static_cast<double>(usual.class_width) -
                 0.5 - static_cast<double>(first_class);
    chart.mark_name = "trained up to here";
  }
  return line_chart(lines, chart);
}

std::string course_svg(const Comparison& found) {
  std::vector<ChartLine> lines;
  for (const Compared& each : found.all) {
    ChartLine& line = lines.emplace_back(ChartLine{each.mechanism, {}});
    for (const Compared::Moment& moment : each.course) line.points.emplace_back(moment.seconds, moment.bleu);
  }
  return line_chart(lines, {.title = "BLEU in validations, by time",
                            .across = "seconds of training, validations included",
                            .up = "BLEU",
                            .from_zero = true,
                            .across_from_zero = true});
}

std::optional<LookedAt> look_at_builtin(const Translator& translator, const std::string& pair, std::int64_t sentences,
                                        std::uint64_t seed, const Context& context) {
  if (translator.attention_shape().layers == 0) return std::nullopt;
  const AlignmentChoice choice = choice_of(translator);
  const Corpus corpus(pair, seed, Corpus::Split::kTest);
  const bool says_places = translator.model_settings().attention.find("local_p") != std::string::npos;
  double entropy = 0, rows = 0, distance = 0, places = 0;
  AlignmentScore score;
  constexpr std::int64_t kTogether = 64;  // maps that are held at a time
  for (std::int64_t begin = 0; begin < sentences; begin += kTogether) {
    std::vector<Corpus::Example> examples;
    std::vector<std::string> sources;
    std::vector<Translator::Result> results;
    for (std::int64_t i = begin; i < std::min(begin + kTogether, sentences); ++i) {
      examples.push_back(corpus.at(static_cast<std::uint64_t>(i)));
      sources.push_back(examples.back().source.text);
      const std::string& target = examples.back().target.text;
      results.push_back({.text = target, .tokens = translator.target().encode(target)});
    }
    const std::vector<Translator::Looked> looked = translator.look(sources, results, 4096, context);
    for (std::size_t i = 0; i < looked.size(); ++i) {
      const std::int64_t keys = looked[i].weights[3];
      const auto* weights = looked[i].weights.data<float>();
      for (std::int64_t row = 0; keys > 1 && row < looked[i].weights.size() / keys; ++row, ++rows) {
        for (std::int64_t j = 0; j < keys; ++j) {
          const auto p = static_cast<double>(weights[row * keys + j]);
          if (p > 0) entropy -= p * std::log(p) / std::log(static_cast<double>(keys));
        }
      }
      score.add(hard_links(unit_weights(looked[i], units_of(examples[i]), choice)), gold_of(examples[i]));
    }
    if (!says_places) continue;
    std::vector<SequencePair> pairs;
    for (std::size_t i = 0; i < looked.size(); ++i) {
      pairs.push_back({i, source_ids(translator.source(), sources[i]), ids_of(looked[i].target)});
    }
    for_each_batch(pairs, 4096, ends_of(translator.target()), [&](const Batch& batch, const auto& number) {
      stop_if_asked(context);
      const std::vector<Tensor> said = translator.model().places(batch);
      for (std::size_t row = 0; row < said.size(); ++row) {
        const std::size_t i = number(static_cast<std::int64_t>(row));
        const std::vector<std::optional<double>> right = middles(examples[i], looked[i].source, looked[i].target);
        for (std::int64_t at = 0; at < said[row].size(); ++at) {
          const auto step = static_cast<std::size_t>(at % said[row][2]);
          if (step >= right.size() || !right[step]) continue;
          distance += std::abs(static_cast<double>(said[row].data<float>()[at]) - *right[step]);
          ++places;
        }
      }
    });
  }
  LookedAt all{.aer = score.error_rate(), .entropy = rows == 0 ? 0 : entropy / rows};
  if (places > 0) all.place_error = distance / places;
  return all;
}

}  // namespace regard
