// What `ebb check` reports, as plain data: the rules that a job breaks, and for a job that leaves the policy open,
// those that rule a policy out. The planner fills it in (planner/cli_check.cpp); check_text and check_json write it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ebb::reports {

struct BrokenRule {
  std::string line;   // place, key, problem, reason and cure, as the other commands refuse with it
  std::string rule;   // its id
  std::string place;  // "job.yaml:3:20", "" when unknown
  std::string key;    // of the job
  std::string problem;
  std::string reason;  // may be ""
  std::string cure;    // may be ""
  std::string source;
};

struct PolicyVerdict {
  std::string policy;
  std::vector<BrokenRule> broken;  // empty: nothing stands against it
};

struct CheckReport {
  std::string job;
  std::string model;
  std::string cluster;
  std::int64_t gpus = 0;
  std::string ebb_version;
  std::string megatron;               // which one the user runs
  std::optional<std::string> policy;  // that the job or the command line names
  std::int64_t rules = 0;             // that were asked
  std::vector<BrokenRule> violations;
  std::vector<PolicyVerdict> policies;  // every policy, when none is named
};

}  // namespace ebb::reports
