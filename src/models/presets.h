// Models by name: what a family is told, as one plain struct that flags, config files and model files share.
//
//     ModelSettings settings = preset("transformer-tiny");
//     set(settings, "dropout", "0.3");
//     settings.source_words = settings.target_words = 10000;
//     const std::unique_ptr<SequenceModel> model = make_model(Builder(parameters, RandomKey(seed)), settings);
//     for (const auto& [key, value] : list(settings)) …              // "family" "transformer", "width" "128", …
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/sequence_model.h"
#include "regard/nn/builder.h"
#include "regard/nn/position.h"

namespace regard {

// What a family does not have it does not look at.
struct ModelSettings {
  std::string family = "transformer";
  std::int64_t source_words = 0, target_words = 0;      // sizes of the vocabularies
  std::int64_t encoder_layers = 4, decoder_layers = 4;  // recurrent families have as many of each
  std::int64_t embedding = 256;                         // width of a word; a transformer's is `hidden`
  std::int64_t hidden = 128;                            // width of states
  std::int64_t attention_width = 0;                     // recurrent: in which queries and keys meet; 0: hidden
  std::int64_t readout = 0;                             // recurrent: before the words; 0: hidden, tied: embedding
  std::int64_t ffn = 256;                               // transformer
  std::int64_t heads = 4;                               // transformer
  std::int64_t kernel = 3;                              // convs2s: of a convolution
  std::string cell = "gru";                             // recurrent: tanh, gru or lstm
  std::string attention = "";                           // the look at the source; "": as the family has it
  std::string encoder_attention = "", decoder_attention = "";  // transformer: the look at oneself
  std::string norm = "pre";                                    // transformer: pre or post
  std::string activation = "relu";                             // transformer: relu or gelu
  std::string positions = "";                                  // sinusoidal, learned or none; "": as the family has it
  std::int64_t longest = 1024;                                 // positions there are
  double dropout = 0, attention_dropout = 0, activation_dropout = 0;
  bool tie = false;    // the table of the target's words is the output
  bool share = false;  // both vocabularies are one, with one table
  bool operator==(const ModelSettings&) const = default;
};

// A family in the registry: one static object in its file.
struct ModelFamily {
  std::string_view name;
  std::string_view about;  // one line
  std::unique_ptr<SequenceModel> (*make)(const Builder& builder, const ModelSettings& settings);
};
struct AddModelFamily {
  explicit AddModelFamily(const ModelFamily& family);
};
PositionKind position_kind(std::string_view positions, PositionKind usual);  // of a setting; "": the usual one
std::vector<ModelFamily> model_families();                                   // sorted by name

// Throws an Error that says which setting is wrong and what is expected.
std::unique_ptr<SequenceModel> make_model(const Builder& builder, const ModelSettings& settings);

struct Preset {
  std::string_view name;
  std::string_view about;  // its sizes, in one line
  ModelSettings settings;
};
const std::vector<Preset>& presets();
const ModelSettings& preset(std::string_view name);  // throws, listing what there is

// Every setting as text, in the order of the struct; set() takes them back. An unknown key, or a value that is none,
// throws.
using Setting = std::pair<std::string, std::string>;
std::vector<Setting> list(const ModelSettings& settings);
void set(ModelSettings& settings, std::string_view key, std::string_view value);
std::string_view meaning(std::string_view key);  // of a setting, for help: one line

}  // namespace regard
