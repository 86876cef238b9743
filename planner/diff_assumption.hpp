// Which assumption of a prediction is off, and by how much: one sentence from two timelines of one plan.
#pragma once

#include <string>
#include <vector>

#include "planner/diff_exposure.hpp"

namespace ebb {

/// A figure of the cluster (or job) that a prediction rests on, and what its being off did to the step.
struct Assumption {
  std::string figure;  // "host_link.h2d"
  std::string said;    // "copies to the device ran at 48.10 GB/s where 55.30 GB/s was assumed"
  double seconds = 0;  // of the difference
  double hidden = 0;   // what its ops took longer behind others, for which the step is not charged
};

/// All of them, largest first, for the part of the step that the windows name.
std::vector<Assumption> assumptions_of(const RankTimeline& predicted, const RankTimeline& measured, Window in_predicted,
                                       Window in_measured);

/// The sentence. Of the whole step or the optimizer step, whichever is off by more; "nothing stands out" where no
/// assumption explains 1 % of it.
std::string verdict_of(const RankTimeline& predicted, const RankTimeline& measured, const std::string& cluster,
                       bool alone);

}  // namespace ebb
