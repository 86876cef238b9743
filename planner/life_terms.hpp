// In words, how the bytes of a term come about. Numbers that do not follow from one product say what they count.
#pragma once

#include "planner/life.hpp"

namespace ebb {

/// The terms of a peak, largest first, none of 0 bytes.
std::vector<LifeTerm> life_terms(const RankModel& rank, const Candidate& candidate, Phase phase,
                                 const std::array<Bytes, kMemoryTerms>& at_peak);

}  // namespace ebb
