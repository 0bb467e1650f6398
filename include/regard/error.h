// What the library throws. The text is one line: what was asked, where, what was expected and what was got.
//
//     try { … } catch (const regard::Error& error) { std::cerr << error.what() << '\n'; }
#pragma once

#include <stdexcept>
#include <string>

#include "regard/export.h"

namespace regard {

enum class ErrorKind {
  kInput,      // an argument or a request that makes no sense
  kFile,       // a file that cannot be read, written or trusted
  kLimit,      // memory or a stated maximum
  kCancelled,  // Context::cancel was asked to stop
  kInternal,   // a mistake in Regard itself
};

class REGARD_API Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& text);
  ~Error() override;
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace regard
