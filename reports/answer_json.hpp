// The JSON documents of `ebb plan`, `ebb simulate`, `ebb layout` and `ebb explain`: one object, keys in a fixed order,
// sizes in bytes as integers, times in seconds, a line feed at the end. Equal reports give equal bytes.
#pragma once

#include <string>

#include "reports/answer.hpp"

namespace ebb::reports {

struct ExplainReport;

std::string to_json(const PlanReport& report);
std::string to_json(const SimulateReport& report);
std::string to_json(const LayoutReport& report);
std::string to_json(const ExplainReport& report);  // explain_json.cpp

}  // namespace ebb::reports
