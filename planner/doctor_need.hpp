// What a job's plan wants from each of its hosts, for `ebb doctor`: of the policy that the job names, else of the one
// that is recommended for it.
#pragma once

#include <optional>

#include "models/job.hpp"
#include "planner/doctor.hpp"

namespace ebb {

/// nullopt: nothing deployable fits the job's budgets, so there is no plan to look at. Precondition: check(job) passed.
std::optional<HostNeed> host_need(const Job& job);

}  // namespace ebb
