// The models that come with Regard: where they are, and which one a line is for.
//
//     const Translator translator(boxed_model(direction_of("他们在看。")));       // zh-en
//
// They lie in the folder that REGARD_MODELS names, else in share/regard/models beside the program or the library, else
// in models/ of the sources that the program was built from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace regard {

std::vector<std::string> boxed_model_places(std::string_view direction);  // files, in the order in which they are tried
std::string boxed_model(std::string_view direction);                      // throws if there is none

std::string_view direction_of(std::string_view line);  // "zh-en" if it has a Chinese character, else "en-zh"

}  // namespace regard
