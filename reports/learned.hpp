// What `ebb learn` reports, as plain data: what a log showed, what was made of it, and what was assumed. The planner
// fills it in (planner/cli_learn.cpp); learned_text and learned_json write it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/units.hpp"

namespace ebb::reports {

struct LearnedRank {
  std::int64_t rank = 0;
  std::int64_t iterations = 0;  // after which it reported
  Bytes allocated{0};
  Bytes predicted_allocated{0};
  Bytes peak{0};
  Bytes predicted_peak{0};
};

/// Iteration lines that were left out, and why.
struct LeftOut {
  std::int64_t first = 0;
  std::int64_t skipped = 0;
  std::int64_t other_batch = 0;
  std::int64_t after_pause = 0;
  std::int64_t outliers = 0;
};

struct LearnReport {
  std::string job;
  std::string log;
  std::string ebb_version;
  std::string policy;
  std::string offload;      // the policy with its parameters, as an offload block has it
  std::string policy_from;  // "log", "job", or "none": assumed
  Seconds iteration{0};
  Seconds deviation{0};
  std::int64_t lines = 0;
  std::int64_t used = 0;
  LeftOut left_out;
  Seconds step_seconds{0};  // compute.step_seconds
  Seconds optimizer_predicted{0};
  std::optional<Seconds> optimizer_logged;
  std::vector<LearnedRank> ranks;
  std::int64_t memory_left_out = 0;  // memory lines whose figures are none
  Bytes resident_remainder{0};
  Bytes peak_remainder{0};
  std::optional<Bytes> theoretical_state;  // Megatron's own formula, where the log has it
  std::vector<std::string> assumed;
  std::vector<std::string> warnings;
  std::string job_file;  // where the job went; "": standard output, or nowhere (--json)
  std::string job_text;  // the job itself
};

}  // namespace ebb::reports
