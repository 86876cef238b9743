// The same reports as text for a terminal of 100 columns. A plan is one screen of 24 lines: flags to paste, who takes
// them, one sentence of reason, the table, what the figures leave out, the next command.
#pragma once

#include <string>

#include "reports/answer.hpp"
#include "reports/style.hpp"

namespace ebb::reports {

struct ExplainReport;

std::string to_text(const PlanReport& report, const Style& style);  // answer_narrow.cpp
/// Every row and column, as wide as they are.
std::string to_wide_text(const PlanReport& report, const Style& style);
std::string to_text(const SimulateReport& report, const Style& style);
std::string to_text(const LayoutReport& report, const Style& style);
std::string to_text(const ExplainReport& report, const Style& style);  // explain_text.cpp

}  // namespace ebb::reports
