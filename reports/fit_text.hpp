// `ebb fit` on a terminal.
#pragma once

#include <cstdint>
#include <string>

#include "reports/fit.hpp"
#include "reports/style.hpp"

namespace ebb::reports {

std::string to_text(const FitReport& report, const Style& style);

/// "longest sequence: 24,576 with offload, 8,192 without; ...", and a value of the goal with its unit.
std::string fit_headline(const FitReport& report);
std::string fit_value(const FitReport& report, std::int64_t value);

}  // namespace ebb::reports
