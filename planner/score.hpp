// Score: Ebb's predictions of recorded runs, and how far they are off. The rank is the last global one, whose figures
// Megatron-LM logs. Allocated and peak bytes come from the allocator's replay (reserved.hpp), with the terms that they
// consist of (term_account.hpp); iteration time from the evaluator.
//
// What remains, recorded less predicted, is never fitted to a case: it is shown beside the terms, and added up by what
// kind of job it is, so that it says which part of the model is short. Not here: how it is printed (reports/score_*).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/progress.hpp"
#include "planner/recorded_runs.hpp"
#include "planner/term_account.hpp"

namespace ebb {

struct ScoredRun {
  const RecordedRun* run = nullptr;  // outlives this
  std::string reason;                // why it is not modelled; "" where it is, and then:
  Bytes allocated{0};
  Bytes peak{0};
  Seconds iteration{0};
  TermAccount between;                // of `allocated`
  TermAccount at_peak;                // of `peak`
  std::vector<std::string> traits;    // what kind of job it is: "pipeline", "experts", ...
  std::vector<std::string> unheeded;  // arguments that change answers and that Ebb does not model

  bool modelled() const { return reason.empty(); }
};

/// One after the other, in order. Never throws for what a case asks: that becomes its reason.
std::vector<ScoredRun> score(const std::vector<RecordedRun>& runs, const ProgressHook& progress = {});

/// The library's cluster with this GPU: "H100-80GB" is hgx-h100's. InputError when there is none.
std::string cluster_with(const std::string& gpu);

}  // namespace ebb
