// `ebb learn --json`: one object, keys in a fixed order, a line feed at the end. Equal reports give equal bytes.
#pragma once

#include <string>

#include "reports/learned.hpp"

namespace ebb::reports {

std::string to_json(const LearnReport& report);

}  // namespace ebb::reports
