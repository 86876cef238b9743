// The writers of the two trace formats. Internal to trace.cpp.
#pragma once

#include <span>
#include <string>

#include "reports/trace.hpp"

namespace ebb::reports {

std::string perfetto_trace(std::span<const TracedPlan> parts);
std::string chrome_trace(std::span<const TracedPlan> parts, const std::string& made_by);

}  // namespace ebb::reports
