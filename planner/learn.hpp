// learn: a job with the figures of its own training log, so that the next answer rests on the user's run.
//
// Time. t, the median of what an iteration took, over the lines that show the steady step: not a process' first ones
// (they hold the first iteration), not those with skipped or nan iterations, not those of another global batch (ramp-
// up), not those right after a save or a validation, and no outliers (further from the median than five robust standard
// deviations, 1.4826 x the median deviation, and than 5 %). compute.step_seconds is the x for which Ebb's simulation of
// the logged policy takes t:
//
//   T(x) = t,  T: forward and backward of x, and what optimizer and communication add where nothing hides them.
//
// T grows with x, so there is one such x or none: where optimizer and communication alone take longer than t, the log
// is of another job, policy or cluster.
//
// Policy. That of the arguments which the run printed; where it printed none, the job's (logged_policy.hpp).
//
// Memory. Of each rank that reported: what it held after a step beyond Ebb's account (measured.resident_remainder), and
// what its highest moment held on top (measured.peak_remainder), which is taken for activations. The largest of all
// ranks, and never less than nothing: where Ebb counts more than was there, its figure stays. Where Ebb
// counts far more (5 % and 64 MiB), a warning says that the log seems to be another run's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/job.hpp"
#include "models/policy.hpp"
#include "planner/logged_policy.hpp"
#include "planner/training_log.hpp"

namespace ebb {

/// Iteration lines of a log, and why some were left out.
struct StepSample {
  Seconds median{0};
  Seconds deviation{0};  // median distance from the median
  std::int64_t lines = 0;
  std::int64_t used = 0;
  std::int64_t first = 0;
  std::int64_t skipped = 0;
  std::int64_t other_batch = 0;
  std::int64_t after_pause = 0;
  std::int64_t outliers = 0;
  bool warm_up_only = false;  // there is no other line than a process' first ones: t holds the first iteration
};

/// InputError at `file`: no iteration line, or none of the job's global batch.
StepSample steady_step(const TrainingLog& log, std::int64_t global_batch, const std::string& file);

struct LearnedMemory {
  std::int64_t rank = 0;
  std::int64_t iterations = 0;
  Bytes allocated{0};  // logged
  Bytes predicted_allocated{0};
  Bytes peak{0};  // logged: max allocated
  Bytes predicted_peak{0};
};

struct Learned {
  Job job;  // with compute.step_seconds and measured
  Candidate candidate;
  PolicySource policy_source = PolicySource::none;
  StepSample sample;
  Seconds step_seconds{0};
  std::optional<Seconds> optimizer_logged;  // where the log has timers: the slowest rank's median
  Seconds optimizer_predicted{0};
  std::vector<LearnedMemory> memory;
  std::vector<std::string> assumed;
  std::vector<std::string> warnings;  // of what speaks against the log
};

/// What the job itself says of compute and measured is not asked. InputError at `file` where the log is not one of this
/// job. Precondition: check(job) passed.
Learned learn(const Job& job, const TrainingLog& log, const std::string& file);

}  // namespace ebb
