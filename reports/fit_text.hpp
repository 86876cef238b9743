// `ebb fit` on a terminal.
#pragma once

#include <string>

#include "reports/fit.hpp"
#include "reports/style.hpp"

namespace ebb::reports {

std::string to_text(const FitReport& report, const Style& style);

}  // namespace ebb::reports
