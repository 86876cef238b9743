// The same report as text for a terminal: one line a case, what is not modelled and why, the errors, and what remains
// unexplained by kind of job.
#pragma once

#include <string>

#include "reports/score.hpp"
#include "reports/style.hpp"

namespace ebb::reports {

std::string to_text(const ScoreReport& report, const Style& style);

}  // namespace ebb::reports
