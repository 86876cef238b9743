// `ebb fit --json`.
#pragma once

#include <string>

#include "reports/fit.hpp"

namespace ebb::reports {

std::string to_json(const FitReport& report);

}  // namespace ebb::reports
