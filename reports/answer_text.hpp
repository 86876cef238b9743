// The same reports as text for a terminal. The first screen of a plan is the answer: flags to paste, who takes them,
// one sentence of reason, the table, what Ebb's own schedules would reach, what the figures leave out, the next
// command.
#pragma once

#include <string>

#include "reports/answer.hpp"
#include "reports/style.hpp"

namespace ebb::reports {

std::string to_text(const PlanReport& report, const Style& style);
std::string to_text(const SimulateReport& report, const Style& style);
std::string to_text(const LayoutReport& report, const Style& style);
std::string to_text(const ExplainReport& report, const Style& style);  // life_text.cpp

}  // namespace ebb::reports
