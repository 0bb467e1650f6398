// What `regard demo` trains: one small model with attention and the same without, on made-up sentences, so that one can
// see what attention changes.
//
//     const Demonstration demonstration({.updates = 1000});
//     const Translator with(demonstration.train("additive", folder + "/with.model", {}, context));
//     const auto [source, right] = demonstration.long_sentence();        // neither model has seen it
//     const TranslationScores scores = demonstration.test(with, context);
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "regard/context.h"
#include "tasks/evaluation.h"
#include "tasks/train_translation.h"
#include "tasks/translator.h"

namespace regard {

struct DemonstrationSettings {
  std::int64_t updates = 1000;
  std::uint64_t seed = 1;
  std::int64_t pairs = 20000, tests = 400;
};

class Demonstration {
 public:
  explicit Demonstration(const DemonstrationSettings& settings);

  // Writes the model to `path` and gives it back. `attention` is a mechanism line or "none".
  std::string train(std::string_view attention, const std::string& path,
                    const std::function<void(const UpdateReport&)>& on_update, const Context& context) const;
  TranslationScores test(const Translator& translator, const Context& context) const;
  TextPair long_sentence() const;

 private:
  DemonstrationSettings settings_;
  TestSet set_;
};

}  // namespace regard
