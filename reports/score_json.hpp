// The JSON document of `ebb score`: cases in the order of the file, then the summary. Sizes in bytes as integers, times
// in seconds, errors relative (predicted / recorded - 1), null where a case is not modelled. Equal reports give equal
// bytes.
#pragma once

#include <string>

#include "reports/score.hpp"

namespace ebb::reports {

std::string to_json(const ScoreReport& report);

}  // namespace ebb::reports
