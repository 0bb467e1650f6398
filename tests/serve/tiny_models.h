// Two small models, trained for a moment, once for all tests of the program: what they write is nonsense, but the same
// nonsense every time.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "data/corpus.h"
#include "serve/models.h"
#include "support/folder.h"
#include "support/quick_training.h"

namespace regard::serve {

class TinyModels {
 public:
  static const Models& all() {
    static const TinyModels made;
    return *made.models_;
  }
  static std::vector<std::string> lines(const std::string& direction, std::size_t count) {
    std::vector<std::string> all;
    const Corpus corpus(direction, 9, Corpus::Split::kTest);
    for (std::uint64_t i = 0; all.size() < count; ++i) all.push_back(corpus.at(i).source.text);
    return all;
  }

 private:
  TinyModels() {
    for (const char* direction : {"zh-en", "en-zh"}) {
      ModelSettings model = preset("transformer-tiny");
      model.hidden = model.ffn = 32;
      model.embedding = 24;
      model.heads = 2;
      model.encoder_layers = model.decoder_layers = 2;
      train_translation({.builtin = direction, .builtin_lines = 150, .builtin_tests = 10}, model, quick_training(),
                        {.path = folder_ / (std::string(direction) + ".model")}, {});
    }
    setenv("REGARD_MODELS", folder_.path().c_str(), 1);
    models_ = std::make_unique<Models>(std::vector<std::string>{});  // those in the box
  }
  Folder folder_;
  std::unique_ptr<Models> models_;
};

}  // namespace regard::serve
