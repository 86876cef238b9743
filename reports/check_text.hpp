// `ebb check` for a terminal: one paragraph a broken rule (where and what, why, cure, source), or one line when none
// is.
#pragma once

#include <string>

#include "reports/check.hpp"
#include "reports/style.hpp"

namespace ebb::reports {

std::string to_text(const CheckReport& report, const Style& style);

}  // namespace ebb::reports
