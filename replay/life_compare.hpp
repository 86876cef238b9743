// Two lives of one job: do they have the same numbers, whatever interrupted them, and the same checkpoints? Records and
// their comparison alone; who runs a life is life_equivalence.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "replay/life_script.hpp"

namespace ebb::replay {

/// One checkpoint that a leg left: a sum over each state that does not depend on how ranks share it.
struct SavedState {
  std::int64_t step = 0;
  std::array<std::uint64_t, 4> content{};  // exp_avg, exp_avg_sq, master, param; 0 for what is not saved
  bool operator==(const SavedState&) const = default;
};

struct LegRecord {
  LegKind kind = LegKind::own;
  std::vector<int> taken;            // as Leg::taken
  std::vector<std::int64_t> ranks;   // their numbers
  std::vector<LifeNumbers> numbers;  // by rank
  std::vector<SavedState> saved;
};
using LifeRecord = std::vector<LegRecord>;

/// The first difference of `life` from the uninterrupted `baseline`, in words; "" for none. Every step of every leg,
/// also those taken twice, against the same training step: loss, squared norm, digest, skipped, loss scale. Where a leg
/// ends at the step where the baseline's ends: place, final state, parameters.
std::string difference(const LifeRecord& baseline, const LifeRecord& life);

/// Checkpoints of one training step are equal, whoever wrote them on however many ranks. "" for none that differs.
std::string content_difference(const LifeRecord& one, const LifeRecord& other);

/// The steps of `shape` were skipped and, unless the loss scale skips some of its own, no other: a life in which all or
/// no steps change the state proves nothing. "" where that holds.
std::string skip_difference(const LifeRecord& baseline, const LifeShape& shape, bool loss_scaling);

}  // namespace ebb::replay
