// `ebb doctor` for a terminal: what was looked at, a paragraph of at most two lines for each finding as long as it is
// short enough, and a last line that says how it stands.
#pragma once

#include <string>

#include "reports/doctor.hpp"
#include "reports/style.hpp"

namespace ebb::reports {

std::string to_text(const DoctorReport& report, const Style& style);

}  // namespace ebb::reports
