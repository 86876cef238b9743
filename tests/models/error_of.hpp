// The message of the InputError that `call` throws; "" when it throws nothing. Other exceptions fail the test.
#pragma once

#include <string>

#include "models/errors.hpp"

namespace ebb {

template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace ebb
