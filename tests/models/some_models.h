// Small models of every family, and pairs for them.
#pragma once

#include <string>
#include <vector>

#include "models/batch.h"
#include "models/presets.h"
#include "regard/random.h"

namespace regard {

inline ModelSettings small_model(std::string_view family) {
  ModelSettings s{.family = std::string(family),
                  .source_words = 11,
                  .target_words = 9,
                  .encoder_layers = 2,
                  .decoder_layers = 2,
                  .embedding = 12,
                  .hidden = 16,
                  .attention_width = 10,
                  .readout = 12,
                  .ffn = 20,
                  .heads = 2,
                  .longest = 24};
  return s;
}

inline ModelSettings with(ModelSettings s, const std::vector<Setting>& changes) {
  for (const auto& [key, value] : changes) set(s, key, value);
  return s;
}

struct NamedModel {
  std::string name;
  ModelSettings settings;
};

// What can be set apart from the mechanisms.
inline std::vector<NamedModel> small_models() {
  std::vector<NamedModel> all;
  const auto add = [&](const std::string& name, std::string_view family, const std::vector<Setting>& changes) {
    all.push_back({name, with(small_model(family), changes)});
  };
  for (const std::string cell : {"tanh", "gru", "lstm"}) {
    for (const std::string family : {"seq2seq", "bahdanau", "luong"}) {
      add(family + "-" + cell, family, {{"cell", cell}});
    }
  }
  add("one-layer", "bahdanau", {{"encoder_layers", "1"}, {"decoder_layers", "1"}, {"tie", "true"}});
  add("no-look", "bahdanau", {{"attention", "none"}});
  add("shared", "luong", {{"tie", "true"}, {"share", "true"}, {"source_words", "9"}});
  add("transformer", "transformer", {});
  add("post-norm", "transformer", {{"norm", "post"}, {"activation", "gelu"}, {"positions", "learned"}});
  add("tied", "transformer", {{"tie", "true"}, {"positions", "none"}, {"encoder_layers", "1"}});
  add("shared-transformer", "transformer", {{"tie", "true"}, {"share", "true"}, {"source_words", "9"}});
  add("convs2s", "convs2s", {});
  add("shared-convs2s", "convs2s",
      {{"tie", "true"}, {"share", "true"}, {"source_words", "9"}, {"kernel", "4"}, {"positions", "sinusoidal"}});
  return all;
}

// And with other mechanisms.
inline std::vector<NamedModel> looking_models() {
  std::vector<NamedModel> all;
  const auto add = [&](std::string_view family, const std::vector<Setting>& changes) {
    all.push_back({std::string(family) + " " + changes[0].second, with(small_model(family), changes)});
  };
  for (const std::string line :
       {"scaled_dot", "general | entmax15", "additive | window:2", "rotary(scaled_dot) | sparsemax", "location:24",
        "random_synth:24", "dense_synth:24", "mixture(scaled_dot, additive)", "scaled_dot | local_p:2", "dot | uniform",
        "relative:3", "scaled_dot | hard:largest"}) {
    for (const std::string family : {"bahdanau", "luong", "convs2s"}) add(family, {{"attention", line}});
    add("transformer", {{"attention", line}, {"encoder_attention", line}});
    if (line.find("local_p") == std::string::npos) add("transformer", {{"decoder_attention", line}});
  }
  add("transformer", {{"attention", "scaled_dot; additive"}, {"decoder_attention", "dot; random_synth:24 | window:3"}});
  return all;
}

inline SequencePair some_pair(std::uint64_t id, std::uint32_t source, std::uint32_t target) {
  SequencePair pair{.id = id};
  const RandomKey key = RandomKey(5).at(id);
  for (std::uint32_t i = 0; i < source; ++i) pair.source.push_back(static_cast<std::int32_t>(random_below(key, i, 9)));
  for (std::uint32_t i = 0; i < target; ++i) {
    pair.target.push_back(static_cast<std::int32_t>(2 + random_below(key, 100 + i, 7)));
  }
  return pair;
}

inline std::vector<SequencePair> some_pairs() {
  return {some_pair(10, 3, 4), some_pair(11, 7, 2), some_pair(12, 1, 1),
          some_pair(13, 5, 6), some_pair(14, 0, 3), some_pair(15, 2, 0)};
}

}  // namespace regard
