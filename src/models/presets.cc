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

}  // namespace

const SettingsTable<ModelSettings>& model_table() {
  using M = ModelSettings;
  constexpr double kBelowOne = 0.999;
  static const SettingsTable<M> table(
      "model",
      {
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
          {"activation_dropout",
           &M::activation_dropout,
           "transformer: inside of the position-wise maps",
           {},
           0,
           kBelowOne},
          {"tie", &M::tie, "the table of the target's words is also the output"},
          {"share", &M::share, "source and target have one vocabulary and one table"},
      });
  return table;
}

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
    fail(ErrorKind::kInput, "model: there is no family '", settings.family, "'", known_names(settings.family, names));
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
    attention.attention = "additive";
    luong.family = "luong";
    luong.attention = "general";
    luong.cell = "lstm";
    luong.encoder_layers = luong.decoder_layers = 2;
    const ModelSettings tiny{.family = "transformer",
                             .attention = "scaled_dot",
                             .encoder_attention = "scaled_dot",
                             .decoder_attention = "scaled_dot",
                             .positions = "sinusoidal",
                             .dropout = 0.1,
                             .tie = true};
    ModelSettings base = tiny;
    base.encoder_layers = base.decoder_layers = 6;
    base.hidden = 512;
    base.ffn = 2048;
    base.heads = 8;
    const ModelSettings convs2s{.family = "convs2s",
                                .encoder_layers = 4,
                                .decoder_layers = 3,
                                .embedding = 256,
                                .hidden = 256,
                                .attention = "dot",
                                .positions = "learned",
                                .dropout = 0.2};
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
  fail(ErrorKind::kInput, "there is no model '", name, "'", known_names(name, names));
}

std::vector<Setting> list(const ModelSettings& settings) { return model_table().list(settings); }
void set(ModelSettings& settings, std::string_view key, std::string_view value) {
  model_table().set(settings, key, value);
}
std::string_view meaning(std::string_view key) { return model_table().field(key).meaning; }

}  // namespace regard
