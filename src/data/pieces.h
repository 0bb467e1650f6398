#pragma once
#include <memory>
#include <string_view>

#include "data/tokenizer.h"
namespace regard {
std::unique_ptr<Tokenizer> read_pieces(std::string_view payload);
}
