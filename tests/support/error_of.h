// What an Error says; "" if there is none.
#pragma once

#include <functional>
#include <string>

#include "regard/error.h"

namespace regard {

inline std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace regard
