// diff: a prediction and a run of the same plan, compared rank by rank. Pure; reading files and printing is cli_diff's.
#pragma once

#include "models/timeline_file.hpp"
#include "reports/diff.hpp"

namespace ebb {

/// InputError unless both are of the same plan: equal digests and ranks, and op for op the same. `names`: for messages.
/// The files may be of any source; the first is taken as the prediction.
reports::DiffReport diff(const TimelineFile& predicted, const TimelineFile& measured, double fail_above,
                         const std::string& predicted_name, const std::string& measured_name);

}  // namespace ebb
