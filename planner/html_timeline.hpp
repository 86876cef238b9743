// From a step's timeline to what an HTML report draws of it: spans by lane, and memory over time.
#pragma once

#include <string>

#include "models/timeline_file.hpp"
#include "reports/html.hpp"

namespace ebb {

/// Ops that take time, as spans; memory as peaks of the phases, which is all that a timeline says by itself.
reports::HtmlTimeline html_timeline(const RankTimeline& rank, const std::string& origin);

/// The same with the rank's plan, which says what every op allocates and releases: memory as it changes, at most `most`
/// levels a curve with every high and low that matters. Precondition: rank has the plan's ops.
reports::HtmlTimeline html_timeline(const Plan& plan, const RankTimeline& rank, const std::string& origin,
                                    std::size_t most = 1'500);

/// The rank with the longest step (median of its repeats).
const RankTimeline& slowest_of(const TimelineFile& file);

}  // namespace ebb
