// The models that a server has, and which one a text is for.
//
//     const Models models({"zh-en.model", "en-fr=/somewhere/m.model"});      // none: those in the box
//     const Model& model = models.of({.source = "auto", .target = "en"}, "他们在看。");
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "serve/request.h"
#include "tasks/translator.h"

namespace regard::serve {

struct Model {
  std::string name;            // "zh-en": never a path
  std::string source, target;  // languages
  Translator translator;
  std::int64_t longest = 0;  // tokens of a line; longer ones are cut
};

class Models {
 public:
  // "MODEL" or "zh-en=MODEL"; the first tells the languages by its name. Throws if one cannot be read.
  explicit Models(const std::vector<std::string>& paths, bool int8 = false);

  const std::vector<Model>& all() const { return all_; }
  // Which one the text is for. Throws a Refusal that lists what there is.
  std::size_t number_of(const Languages& asked, std::string_view text) const;
  // By its letters: "zh" or the language that is read and has others.
  std::string language_of(std::string_view text) const;

 private:
  std::string known() const;
  std::vector<Model> all_;
};

// "zh-Hans" -> "zh"; lower case.
std::string plain_language(std::string_view code);
std::string_view language_name(std::string_view code);  // "Chinese"; of others the code

}  // namespace regard::serve
