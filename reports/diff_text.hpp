// The comparison of a prediction with a run for a terminal: the sentence first, then the evidence, the slowest rank's.
#pragma once

#include <string>

#include "reports/diff.hpp"
#include "reports/style.hpp"

namespace ebb::reports {

std::string to_text(const DiffReport& report, const Style& style);

}  // namespace ebb::reports
