// An Answer as the reports print it.
#pragma once

#include "planner/search.hpp"
#include "reports/answer.hpp"

namespace ebb {

reports::Candidate report_of(const Answer& answer);

}  // namespace ebb
