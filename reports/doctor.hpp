// What `ebb doctor` reports, as plain data: findings about this host, and the plan that they were measured against. The
// planner fills it in (planner/cli_doctor.cpp); doctor_text and doctor_json write it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/units.hpp"

namespace ebb::reports {

struct HostFinding {
  std::string topic;
  std::string verdict;  // "ok", "note" or "problem"
  std::string figure;
  std::string consequence;  // may be ""
  std::string cure;         // may be ""
};

/// Of each host.
struct PlanNeed {
  std::string job;
  std::string policy;  // with its flags; "": nothing fits the job's budgets
  std::int64_t hosts = 1;
  std::int64_t ranks = 1;
  Bytes pinned{0};
  Bytes pageable{0};
  Bytes checkpoint{0};  // of the whole job
};

struct DoctorReport {
  std::string ebb_version;
  std::optional<PlanNeed> plan;
  std::vector<HostFinding> findings;

  std::int64_t count(const std::string& verdict) const {
    std::int64_t sum = 0;
    for (const HostFinding& finding : findings) sum += finding.verdict == verdict ? 1 : 0;
    return sum;
  }
  /// Whether something stands against the plan.
  bool stands_against() const { return plan && (plan->policy.empty() || count("problem") > 0); }
};

}  // namespace ebb::reports
