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

// Whether it compares the place of a query with that of a key, or knows keys by their place alone: within one sequence
// that means something, between two languages little.
bool compares_places(std::string_view line);
// Whether it looks where the length of the whole sequence says, which a decoder does not know of its own words.
bool needs_length(std::string_view line);

}  // namespace regard
