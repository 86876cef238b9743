#include "planner/constraints.hpp"

#include "planner/rules.hpp"

namespace ebb {

namespace {

void refuse(const std::vector<Violation>& broken) {
  if (broken.empty()) return;
  std::string text;
  for (const Violation& violation : broken) {
    if (!text.empty()) text += '\n';
    text += text_of(violation);
  }
  throw InputError(Place{}, text);
}

}  // namespace

void check(const Job& job, Megatron megatron) { refuse(violations(job, job.offload.policy, megatron)); }

void check_policy(const Job& job, Policy policy) { refuse(objections(job, policy)); }

}  // namespace ebb
