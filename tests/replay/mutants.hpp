// Plans with one thing wrong, for tests that it shows.
#pragma once

#include <cstdint>

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

}  // namespace ebb::test
