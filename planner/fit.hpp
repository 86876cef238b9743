// Inverse questions: how far a job can go before nothing that can be deployed fits, and with how little it would do.
//
//   max sequence | micro-batch | layers   the largest value that fits; twice: with every schedule, and with resident
//                                         state only (what offloading makes possible is the difference)
//   min gpus                              the fewest GPUs, data parallelism shrinking, all else as it is
//   min host-memory                       the least memory of a host that must fit (host_demand.hpp)
//
// What fits is what `ebb plan` would recommend something for. The largest value is found by doubling and bisection,
// which asks for memory that grows with the value: so the values beside the boundary are tried as well, and where one
// beyond it fits, the search goes on from there. The fewest GPUs and the least memory are found by trying all values
// from the least on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/search.hpp"

namespace ebb {

enum class FitGoal : std::uint8_t { sequence, micro_batch, layers, gpus, host_memory };
std::string_view name_of(FitGoal goal);
/// Names of the goals to maximise (`largest`), or of those to minimise.
std::vector<std::string> fit_goal_words(bool largest);
/// nullopt: no goal has this name.
std::optional<FitGoal> fit_goal_named(std::string_view word);

/// What stops a job from going further.
enum class FitStop : std::uint8_t {
  nothing,        // it fits
  rule,           // of the job: no such job can run
  policy,         // nothing that can be deployed is left to try
  device_budget,  // device memory
  host_budget,    // a host's memory
  numa            // a socket's memory
};
std::string_view name_of(FitStop stop);

struct FitPoint {
  std::int64_t value = 0;
  std::optional<Answer> answer;  // recommended there; where nothing fits, what needs least (none: no valid job)
  std::string obstacle;          // why nothing fits; "" when something does
  FitStop stop = FitStop::nothing;
};

struct FitLimit {
  bool offload = true;             // every schedule; false: resident state only
  std::optional<FitPoint> fits;    // the last value that does; nullopt: none
  std::optional<FitPoint> breaks;  // the next value, which does not, be it by a rule; nullopt: there is none
};

struct FitResult {
  FitGoal goal = FitGoal::sequence;
  std::int64_t step = 1;  // between values; 0: they have no common distance
  std::vector<FitLimit> limits;
  std::vector<std::string> notes;
};

/// Precondition: check(job) passed. InputError where the goal's key cannot change.
FitResult fit(const Job& job, FitGoal goal, Megatron megatron);

/// The job at another value of the goal's key (not host_memory). A measured compute.step_seconds grows or shrinks like
/// the roofline does.
Job with_value(const Job& job, FitGoal goal, std::int64_t value);

}  // namespace ebb
