// Small models and lines for tests of what uses them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/corpus.h"
#include "models/presets.h"
#include "support/folder.h"
#include "support/quick_training.h"
#include "tasks/train_translation.h"

namespace regard {

// Two small models of different families with the same words, trained for a moment: what they write is nonsense, but
// the same nonsense every time.
class SmallTranslators : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new Folder;
    for (const char* name : {"gru-attention", "transformer-tiny"}) {
      ModelSettings model = preset(name);
      model.hidden = 32;
      model.embedding = 24;
      model.ffn = 32;
      model.heads = 2;
      model.encoder_layers = model.decoder_layers = model.family == "transformer" ? 2 : 1;
      train_translation({.builtin = "zh-en", .builtin_lines = 150, .builtin_tests = 10}, model, quick_training(),
                        {.path = path(name)}, {});
    }
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static std::string path(const std::string& name) { return *folder_ / (name + ".model"); }
  static std::vector<std::string> lines(std::size_t count) {
    std::vector<std::string> all;
    const Corpus corpus("zh-en", 9, Corpus::Split::kTest);
    for (std::uint64_t i = 0; all.size() < count; ++i) all.push_back(corpus.at(i).source.text);
    return all;
  }

 private:
  inline static Folder* folder_ = nullptr;
};

}  // namespace regard
