#include "regard/error.h"

namespace regard {

Error::Error(ErrorKind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}
Error::~Error() = default;

}  // namespace regard
