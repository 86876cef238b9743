// `ebb learn` for people: what the log showed and what was assumed, for standard error; and the same as comments at the
// head of the learned job.
#pragma once

#include <string>

#include "reports/learned.hpp"

namespace ebb::reports {

/// Lines without the name of the program in front.
std::string to_text(const LearnReport& report);
/// "# Learned by ebb from train.log: ...".
std::string comments_of(const LearnReport& report);

}  // namespace ebb::reports
