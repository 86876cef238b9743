// The parts of two lives side by side: what each had on the device at most, what its plan says, and what a policy may
// not exceed.
//
// Strictly lower is demanded of the whole life, whatever the policy, so that an offload that does nothing fails; and,
// for policies that bound what is resident (chunked and pipelined of all state, windowed of the moments: its masters
// come and go as a whole), of every part in which resident has such state on the device when it has most there, skipped
// steps excepted. (An optimizer that holds the masters makes all state in the first step, whose peak may be forward's:
// no policy can be below that.) Elsewhere they may not be higher. Full reload, which builds and loads on the device and
// offloads then, may not be higher in init, save and load. Live bytes are the planned ones in every part
// and on every rank; state on the device stays under the policy's bound (life_residency.hpp).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "replay/life_compare.hpp"

namespace ebb::replay {

enum class Demand : std::uint8_t { none, not_higher, lower };
std::string_view name_of(Demand demand);

/// One part, on one number of ranks, of the rank where the policy saves least.
struct PartRow {
  std::optional<LifePart> part;  // none: the whole life
  std::size_t ranks = 1;
  Bytes resident{0};  // highest live bytes
  Bytes policy{0};
  Bytes planned{0};            // the policy's
  Bytes state{0};              // of `planned`: of optimizer state at most, on any rank
  std::optional<Bytes> bound;  // of the state
  Demand demand = Demand::none;

  bool met() const;  // the demand
  bool as_planned() const { return policy == planned; }
  bool bounded() const { return !bound || state <= *bound; }
};

/// Both lives of the same legs. `resident`, `policy`: the plans that own and resharded legs ran, by rank.
struct PartsOf {
  const LifeRecord& life;
  std::span<const LifeRank> own;
  std::span<const LifeRank> other;
};
std::vector<PartRow> compare_parts(const PartsOf& resident, const PartsOf& policy);

/// The first part of the life, on any rank, whose live peak is not the planned one, in words.
std::string unplanned(const LifeRecord& life);

}  // namespace ebb::replay
