// Lines of mechanisms as models take them: one for all layers or one a layer, with what the model itself knows added.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace regard {

// "a" or "a; b; c" for three layers; `what` names the setting in the error.
std::vector<std::string> lines_of(std::string_view what, std::string_view lines, std::int64_t layers);

// The line with the scope causal. What looks by the length of the whole sequence cannot be causal: an error.
std::string causal_line(std::string_view line);

// Whether rows of a query's place may be asked together, as if all stood at the first one's: nothing in the line looks
// at where a query stands.
bool looks_by_place(std::string_view line);

}  // namespace regard
