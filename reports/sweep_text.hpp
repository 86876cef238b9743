// `ebb sweep` on a terminal: one table.
#pragma once

#include <string>

#include "reports/style.hpp"
#include "reports/sweep.hpp"

namespace ebb::reports {

std::string to_text(const SweepReport& report, const Style& style);

}  // namespace ebb::reports
