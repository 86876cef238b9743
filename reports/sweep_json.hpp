// `ebb sweep --json`.
#pragma once

#include <string>

#include "reports/sweep.hpp"

namespace ebb::reports {

std::string to_json(const SweepReport& report);

}  // namespace ebb::reports
