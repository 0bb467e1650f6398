#include "models/presets.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <variant>

#include "base/check.h"
#include "base/suggest.h"

namespace regard {
namespace {

std::map<std::string_view, ModelFamily>& families() {
  static std::map<std::string_view, ModelFamily> all;
  return all;
}

// "did you mean …? known: …"
std::string known(std::string_view name, const std::vector<std::string>& all) {
  std::string made;
  const std::string near = closest(name, all);
  if (!near.empty()) made = text("; did you mean '", near, "'?");
  made += made.empty() ? "; known: " : " known: ";
  for (std::size_t i = 0; i < all.size(); ++i) made += (i == 0 ? "" : ", ") + all[i];
  return made;
}

struct Field {
  std::string_view key;
  std::variant<std::string ModelSettings::*, std::int64_t ModelSettings::*, double ModelSettings::*,
               bool ModelSettings::*>
      member;
  std::string_view meaning;
  std::vector<std::string> words = {};  // what a text may be; none: anything
  double least = 0, most = 1 << 24;     // of a number
};

const std::vector<Field>& fields() {
  using M = ModelSettings;
  constexpr double kBelowOne = 0.999;
  static const std::vector<Field> all = {
      {"family", &M::family, "what the model is made of"},
      {"source_words", &M::source_words, "size of the source's vocabulary"},
      {"target_words", &M::target_words, "size of the target's vocabulary"},
      {"encoder_layers", &M::encoder_layers, "layers of the encoder", {}, 0, 64},
      {"decoder_layers",
       &M::decoder_layers,
       "layers of the decoder; recurrent families have as many of each",
       {},
       1,
       64},
      {"embedding", &M::embedding, "width of a word; a transformer's is hidden", {}, 1, 1 << 16},
      {"hidden", &M::hidden, "width of the states", {}, 1, 1 << 16},
      {"attention_width", &M::attention_width, "recurrent: where queries and keys meet; 0: hidden", {}, 0, 1 << 16},
      {"readout",
       &M::readout,
       "recurrent: width before the words; 0: hidden, or of tied words embedding",
       {},
       0,
       1 << 16},
      {"ffn", &M::ffn, "transformer: width inside of the position-wise maps", {}, 1, 1 << 18},
      {"heads", &M::heads, "transformer: attentions side by side", {}, 1, 1 << 10},
      {"kernel", &M::kernel, "convs2s: positions a convolution sees", {}, 1, 1 << 10},
      {"cell", &M::cell, "recurrent: what a step computes", {"tanh", "gru", "lstm"}},
      {"attention", &M::attention, "how the decoder looks at the source: a line, or 'none' of recurrent families"},
      {"encoder_attention", &M::encoder_attention, "transformer: how the encoder looks at itself: a line"},
      {"decoder_attention", &M::decoder_attention, "transformer: how the decoder looks at itself: a line"},
      {"norm", &M::norm, "transformer: normalised before each part or after it", {"pre", "post"}},
      {"activation", &M::activation, "transformer: inside of the position-wise maps", {"relu", "gelu"}},
      {"positions", &M::positions, "how places are told", {"", "sinusoidal", "learned", "none"}},
      {"longest", &M::longest, "positions there are, of families that count them", {}, 1, 1 << 20},
      {"dropout", &M::dropout, "of words, states and outputs", {}, 0, kBelowOne},
      {"attention_dropout", &M::attention_dropout, "of attention weights", {}, 0, kBelowOne},
      {"activation_dropout", &M::activation_dropout, "transformer: inside of the position-wise maps", {}, 0, kBelowOne},
      {"tie", &M::tie, "the table of the target's words is also the output"},
      {"share", &M::share, "source and target have one vocabulary and one table"},
  };
  return all;
}

const Field& field(std::string_view key) {
  std::vector<std::string> keys;
  for (const Field& each : fields()) {
    if (each.key == key) return each;
    keys.emplace_back(each.key);
  }
  fail(ErrorKind::kInput, "model: there is no setting '", key, "'", known(key, keys));
}

template <class T>
T number_from(const Field& of, std::string_view value) {
  T made{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), made);
  check(error == std::errc() && end == value.data() + value.size() && made >= static_cast<T>(of.least) &&
            made <= static_cast<T>(of.most),
        "model: ", of.key, " is '", value, "', expected a ", std::is_same_v<T, double> ? "" : "whole ", "number from ",
        of.least, " to ", of.most);
  return made;
}

// The shortest text that reads back as the same number.
template <class T>
std::string number_text(T value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  return {text, end};
}

}  // namespace

AddModelFamily::AddModelFamily(const ModelFamily& family) { families().emplace(family.name, family); }

PositionKind position_kind(std::string_view positions, PositionKind usual) {
  if (positions == "sinusoidal") return PositionKind::kSinusoidal;
  if (positions == "learned") return PositionKind::kLearned;
  return positions == "none" ? PositionKind::kNone : usual;
}

std::vector<ModelFamily> model_families() {
  std::vector<ModelFamily> all;
  for (const auto& [name, family] : families()) all.push_back(family);
  return all;
}

std::unique_ptr<SequenceModel> make_model(const Builder& builder, const ModelSettings& settings) {
  const auto found = families().find(settings.family);
  if (found == families().end()) {
    std::vector<std::string> names;
    for (const auto& [name, family] : families()) names.emplace_back(name);
    fail(ErrorKind::kInput, "model: there is no family '", settings.family, "'", known(settings.family, names));
  }
  ModelSettings checked;  // numbers and words that come from elsewhere are looked at once more
  for (const auto& [key, value] : list(settings)) set(checked, key, value);
  return found->second.make(builder, checked);
}

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = [] {
    const ModelSettings recurrent{
        .family = "seq2seq", .encoder_layers = 1, .decoder_layers = 1, .embedding = 256, .hidden = 512, .dropout = 0.2};
    ModelSettings rnn = recurrent, gru = recurrent, lstm = recurrent, attention = recurrent, luong = recurrent;
    rnn.cell = "tanh";
    lstm.cell = "lstm";
    attention.family = "bahdanau";
    luong.family = "luong";
    luong.cell = "lstm";
    luong.encoder_layers = luong.decoder_layers = 2;
    const ModelSettings tiny{.family = "transformer", .dropout = 0.1, .tie = true};
    ModelSettings base = tiny;
    base.encoder_layers = base.decoder_layers = 6;
    base.hidden = 512;
    base.ffn = 2048;
    base.heads = 8;
    const ModelSettings convs2s{
        .family = "convs2s", .encoder_layers = 4, .decoder_layers = 3, .embedding = 256, .hidden = 256, .dropout = 0.2};
    return std::vector<Preset>{
        {"rnn", "tanh, 1 layer, words 256, states 512, no attention", rnn},
        {"gru", "gru, 1 layer, words 256, states 512, no attention", gru},
        {"lstm", "lstm, 1 layer, words 256, states 512, no attention", lstm},
        {"gru-attention", "gru in both directions, 1 layer, words 256, states 512, additive attention", attention},
        {"luong", "lstm, 2 layers, words 256, states 512, general attention after the cells, input feeding", luong},
        {"transformer-tiny", "4 + 4 layers, width 128, ffn 256, 4 heads", tiny},
        {"transformer-base", "6 + 6 layers, width 512, ffn 2048, 8 heads", base},
        {"convs2s", "4 + 3 layers of convolutions over 3, words 256, states 256, attention in every layer", convs2s},
    };
  }();
  return all;
}

const ModelSettings& preset(std::string_view name) {
  std::vector<std::string> names;
  for (const Preset& each : presets()) {
    if (each.name == name) return each.settings;
    names.emplace_back(each.name);
  }
  fail(ErrorKind::kInput, "there is no model '", name, "'", known(name, names));
}

std::vector<Setting> list(const ModelSettings& settings) {
  std::vector<Setting> all;
  for (const Field& each : fields()) {
    const std::string value = std::visit(
        [&](auto member) -> std::string {
          const auto& held = settings.*member;
          using T = std::decay_t<decltype(held)>;
          if constexpr (std::is_same_v<T, bool>) {
            return held ? "true" : "false";
          } else if constexpr (std::is_same_v<T, std::string>) {
            return held;
          } else {
            return number_text(held);
          }
        },
        each.member);
    all.emplace_back(each.key, value);
  }
  return all;
}

void set(ModelSettings& settings, std::string_view key, std::string_view value) {
  const Field& of = field(key);
  std::visit(
      [&](auto member) {
        auto& held = settings.*member;
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, bool>) {
          check(value == "true" || value == "false", "model: ", key, " is '", value, "', expected true or false");
          held = value == "true";
        } else if constexpr (std::is_same_v<T, std::string>) {
          const std::vector<std::string>& words = of.words;
          check(words.empty() || std::find(words.begin(), words.end(), value) != words.end(), "model: ", key, " is '",
                value, "'", known(value, words));
          held = value;
        } else {
          held = number_from<T>(of, value);
        }
      },
      of.member);
}

std::string_view meaning(std::string_view key) { return field(key).meaning; }

}  // namespace regard
