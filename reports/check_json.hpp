// `ebb check --json`: one object, keys in a fixed order, a line feed at the end. Equal reports give equal bytes.
#pragma once

#include <string>

#include "reports/check.hpp"

namespace ebb::reports {

std::string to_json(const CheckReport& report);

}  // namespace ebb::reports
