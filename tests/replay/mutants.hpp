// Plans with one thing wrong, for tests that it shows.
#pragma once

#include <cstdint>
#include <vector>

#include "models/plan.hpp"

namespace ebb::test {

/// The plan without the `drop`-th of its dependencies.
inline Plan without(const Plan& plan, std::uint32_t drop) {
  Plan mutant = plan;
  mutant.deps.erase(mutant.deps.begin() + drop);
  for (Op& op : mutant.ops) {
    if (op.deps_begin <= drop && drop < op.deps_begin + op.deps_count)
      --op.deps_count;
    else if (op.deps_begin > drop)
      --op.deps_begin;
  }
  return mutant;
}

/// The plan without op `drop`; what depended on it depends on what that came after. No release waits for it.
inline Plan without_op(const Plan& plan, std::uint32_t drop) {
  Plan mutant = plan;
  mutant.ops.clear();
  mutant.deps.clear();
  const auto place = [drop](OpId op) { return OpId{op.index > drop ? op.index - 1 : op.index}; };
  std::vector<OpId> before(plan.deps_of(plan.ops[drop]).begin(), plan.deps_of(plan.ops[drop]).end());
  for (std::uint32_t i = drop; i-- > 0;) {
    if (plan.ops[i].stream != plan.ops[drop].stream) continue;
    before.push_back({i});
    break;
  }
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    if (i == drop) continue;
    Op op = plan.ops[i];
    op.deps_begin = static_cast<std::uint32_t>(mutant.deps.size());
    for (const OpId dep : plan.deps_of(plan.ops[i])) {
      if (dep.index != drop) {
        mutant.deps.push_back(place(dep));
        continue;
      }
      for (const OpId earlier : before) mutant.deps.push_back(place(earlier));
    }
    op.deps_count = static_cast<std::uint32_t>(mutant.deps.size()) - op.deps_begin;
    if (op.after.valid()) op.after = place(op.after);
    mutant.ops.push_back(op);
  }
  return mutant;
}

}  // namespace ebb::test
