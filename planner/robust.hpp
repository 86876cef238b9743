// `--robust`: a job as it is when what Ebb does not know for certain is at its worst, to be searched like any other.
//
// Device memory is compared as an upper bound already (reserve_margin.hpp, reserved.hpp), pinned memory with torch's
// rounding to powers of two. What is left, and taken here:
//   load    a job that starts fresh is resumed one day: the load with optimizer state must fit as well
//   links   of what was measured, 95 %: of five hosts with H200 the slowest link was 5 % below their mean (89.2 of
//           93.7 GB/s both ways, models/clusters/hgx-h200.yaml). Of a datasheet, a report, a default or a figure scaled
//           from fewer GPUs, 73 %: what two H200 of a host reached together (137 GB/s) of what their links promise
//           alone (2 x 93.7). That holds for the host's Adam too. What the user gave (--set) is left alone.
//   host    5 % of its memory stay free for what is not modelled: the system, the training processes, data loading (a
//           choice, not a measurement)
// Left as they are: compute and collectives, which slow all policies alike, and the buffers of NCCL, which are outside
// every figure (the context's figure).
#pragma once

#include <string>
#include <vector>

#include "models/job.hpp"
#include "planner/search.hpp"

namespace ebb {

/// Whether a figure was measured as it stands, by its source: "measured ..." that does not say "scaled" or "times".
bool is_measured(const std::string& source);

/// `assumptions`: what was made worse, a line each. check(job) holds for the result if it held before.
Job at_its_worst(const Job& job, std::vector<std::string>& assumptions);

/// search() for a job at its worst, where what is taken must get through `start`, the job's own, as well.
SearchResult search_robustly(const Job& worst, Start start, const SearchOptions& options);

}  // namespace ebb
