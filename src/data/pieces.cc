#include "data/pieces.h"

#include "base/check.h"
namespace regard {
std::unique_ptr<Tokenizer> read_pieces(std::string_view) { fail(ErrorKind::kInput, "pieces"); }
}  // namespace regard
