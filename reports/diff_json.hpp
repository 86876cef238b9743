// The comparison of a prediction with a run as one JSON document, all ranks. Times are seconds, sizes bytes.
#pragma once

#include <string>

#include "reports/diff.hpp"

namespace ebb::reports {

std::string to_json(const DiffReport& report);

}  // namespace ebb::reports
