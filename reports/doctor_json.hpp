// `ebb doctor --json`: one object, keys in a fixed order, a line feed at the end. Equal reports give equal bytes.
#pragma once

#include <string>

#include "reports/doctor.hpp"

namespace ebb::reports {

std::string to_json(const DoctorReport& report);

}  // namespace ebb::reports
