// Which policy a logged run had: what it printed of its arguments at its start, held against the job's offload block.
// Not here: what the arguments mean (megatron_parts.hpp), and whether the job allows the policy (constraints.hpp).
//
// Megatron-LM prints every argument with its value, switched on or not, so the name of a switch also tells which
// Megatron ran. dev keeps --offload-optimizer-states as a deprecated name of --chunked-optimizer-state-offload, so
// there it means windowed; pull request 6544, with its chunk numel, means full reload or chunked. Source: Megatron-LM
// dev, OptimizerConfig ("offload_optimizer_states is deprecated").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "models/job.hpp"
#include "models/policy.hpp"
#include "planner/training_log.hpp"

namespace ebb {

enum class PolicySource : std::uint8_t {
  log,   // the printed arguments
  job,   // the log prints none of them
  none,  // neither says a word: resident is assumed
};

constexpr std::string_view name_of(PolicySource source) {
  switch (source) {
    case PolicySource::log:
      return "log";
    case PolicySource::job:
      return "job";
    case PolicySource::none:
      return "none";
  }
  return "";
}

struct LoggedPolicy {
  Candidate candidate;
  PolicySource source = PolicySource::none;
};

/// The candidate as an offload block has it: "policy: chunked, chunk_numel: 1000000000".
std::string offload_text(const Candidate& candidate);

/// What the run printed; nullopt: none of the switches. InputError at `file` for values that Megatron would not take.
std::optional<Candidate> printed_policy(const TrainingLog& log, const std::string& file);

/// The run's policy with every parameter that it needs; what the job leaves open is the log's. InputError at `file`
/// where the two differ.
LoggedPolicy logged_policy(const Job& job, const TrainingLog& log, const std::string& file);

}  // namespace ebb
