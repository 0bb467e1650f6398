// The lab: any mechanism of attention on small numbers, and every step of it.
//
//     attend_json({.line = "scaled_dot | causal", .sentence = "the cat sat"}, context)
//     // {"line": …, "tokens": ["the", …], "q": […], "k": […], "v": […], "scores": [head][query][key],
//     //  "weights": the same shape, "context": [query][…], "learned": [{"name": …, "shape": […]}], "formula": {…}}
//
// Numbers are those of the engine, to the last bit; what nobody may see has the score null. There is one head; of
// multi_dimensional every feature of the values is one.
#pragma once

#include <string>

#include "regard/context.h"
#include "serve/request.h"

namespace regard::serve {

// Throws a Refusal that says what the mechanism needs.
std::string attend_json(const AttendRequest& asked, const Context& context);

}  // namespace regard::serve
