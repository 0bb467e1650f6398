// A trace as one HTML file that needs nothing else: no network, no other file. Whoever opens it chooses layer, head,
// mean, rollout or norms, points at a cell or a word and reads the weight.
//
// Weights are embedded as 16-bit numbers between the least and the largest of their map, in base64: at most 0.00001
// off for weights from 0 to 1. A map of more than 512 rows or columns is embedded as the heaviest of the cells that
// fall on each of 512 × 512 places, and the eight heaviest of every row with their exact place. The map that is shown
// first is also there as tiles of 256 × 256 cells of 8 bits, packed by zlib, if they take less than 6 MB: the page
// unpacks those around the cell that is pointed at.
#pragma once

#include <string>

#include "view/choose.h"

namespace regard {

// All maps of the item that was chosen; the one that was chosen is shown first.
std::string page(const Trace& trace, const MapChoice& choice);

}  // namespace regard
