// Which groups there are: pure. Communicators are in rank_comms.cpp.
#include "replay/groups.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "models/errors.hpp"

namespace ebb::replay {

std::vector<std::optional<CommGroup>> groups_of_ops(const Program& program) {
  const Plan& plan = *program.plan;
  std::vector<std::optional<CommGroup>> groups(plan.ops.size());
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const Action& action = program.actions[i];
    const bool collective = std::holds_alternative<BucketCollective>(action) ||
                            std::holds_alternative<NormCollective>(action) ||
                            std::holds_alternative<LargestCollective>(action);
    if (collective && plan.ops[i].members > 1) groups[i] = group_of(plan, plan.ops[i]);
  }
  return groups;
}

std::vector<CommGroup> distinct_groups(std::span<const Program* const> programs) {
  std::set<CommGroup> groups;
  for (const Program* program : programs) {
    for (const auto& group : groups_of_ops(*program)) {
      if (group) groups.insert(*group);
    }
  }
  return {groups.begin(), groups.end()};
}

std::vector<std::int64_t> missing_ranks(const CommGroup& group, std::span<const std::int64_t> present) {
  std::vector<std::int64_t> missing;
  for (std::int64_t member = 0; member < group.members; ++member) {
    const std::int64_t rank = group.first + member * group.stride;
    if (!std::binary_search(present.begin(), present.end(), rank)) missing.push_back(rank);
  }
  return missing;
}

std::vector<CommGroup> complete_groups(std::span<const CommGroup> groups, std::span<const std::int64_t> present,
                                       bool alone, std::vector<std::string>& remarks) {
  std::vector<CommGroup> complete;
  std::set<std::int64_t> missing;
  for (const CommGroup& group : groups) {
    const std::vector<std::int64_t> absent = missing_ranks(group, present);
    if (absent.empty()) complete.push_back(group);
    missing.insert(absent.begin(), absent.end());
  }
  if (missing.empty()) return complete;
  constexpr std::size_t kNamed = 8;
  std::vector<std::int64_t> named(missing.begin(), missing.end());
  const std::string more = named.size() > kNamed ? fmt::format(" and {} more", named.size() - kNamed) : "";
  named.resize(std::min(named.size(), kNamed));
  const std::string who = fmt::format("{}{}", fmt::join(named, ", "), more);
  if (!alone) {
    throw InputError({}, fmt::format("collectives of the plan need ranks that are not here: {}", who),
                     "start them too (mpirun, srun or torchrun), or leave these collectives out with --alone");
  }
  remarks.push_back(fmt::format("collectives with absent ranks ({}) are left out: {} of {} groups", who,
                                groups.size() - complete.size(), groups.size()));
  return complete;
}

}  // namespace ebb::replay
