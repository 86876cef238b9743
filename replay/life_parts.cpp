#include "replay/life_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/quantity_text.hpp"
#include "replay/life_files.hpp"
#include "replay/life_residency.hpp"

namespace ebb::replay {

namespace {

/// The states of which a policy never has all on the device.
std::uint8_t bounded_states(Policy policy) {
  if (policy == Policy::chunked || policy == Policy::pipelined) return kAllState;
  return policy == Policy::windowed ? kMoments : std::uint8_t{0};
}

Demand demand_of(Policy policy, LifePart part, Bytes resident_state) {
  const bool skip = part == LifePart::skip || part == LifePart::first_skip;
  if (bounded_states(policy) != 0) return resident_state.value > 0 && !skip ? Demand::lower : Demand::not_higher;
  const bool step = skip || part == LifePart::step || part == LifePart::first_step;
  return step ? Demand::none : Demand::not_higher;
}

/// Highest live and planned bytes by rank and part, of the legs on one number of ranks.
struct Peaks {
  struct Of {
    bool seen = false;
    Bytes live{0};
    Bytes planned{0};
  };
  std::vector<std::array<Of, kPartCount>> ranks;
};

Peaks peaks_of(const LifeRecord& life, bool other) {
  Peaks peaks;
  for (const LegRecord& leg : life) {
    if ((leg.kind == LegKind::resharded) != other) continue;
    peaks.ranks.resize(leg.numbers.size());
    for (std::size_t r = 0; r < leg.numbers.size(); ++r) {
      for (const PartPeak& peak : leg.numbers[r].peaks) {
        Peaks::Of& of = peaks.ranks[r][static_cast<std::size_t>(peak.part)];
        of = {true, std::max(of.live, peak.live), std::max(of.planned, peak.planned)};
      }
    }
  }
  return peaks;
}

/// Of the whole life: the highest of all parts.
Peaks::Of whole(const std::array<Peaks::Of, kPartCount>& parts) {
  Peaks::Of all;
  for (const Peaks::Of& of : parts)
    all = {all.seen || of.seen, std::max(all.live, of.live), std::max(all.planned, of.planned)};
  return all;
}

template <class OfRank>
void fill(PartRow& row, std::size_t ranks, OfRank of_rank) {
  row.ranks = ranks;
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto [resident, policy] = of_rank(r);
    if (r > 0 && resident.live - policy.live >= row.resident - row.policy) continue;
    row.resident = resident.live;
    row.policy = policy.live;
    row.planned = policy.planned;
  }
}

std::vector<PartRow> rows_of(const PartsOf& resident, const PartsOf& policy, bool other) {
  std::vector<PartRow> rows;
  const Peaks a = peaks_of(resident.life, other);
  const Peaks b = peaks_of(policy.life, other);
  const std::span<const LifeRank> plans = other ? policy.other : policy.own;
  const std::span<const LifeRank> resident_plans = other ? resident.other : resident.own;
  const std::size_t ranks = std::min(a.ranks.size(), b.ranks.size());
  if (ranks == 0) return rows;
  for (const LifePart part :
       {LifePart::init, LifePart::first_step, LifePart::first_skip, LifePart::step, LifePart::skip, LifePart::save,
        LifePart::load, LifePart::load_params, LifePart::reload}) {
    const auto p = static_cast<std::size_t>(part);
    if (!b.ranks.front()[p].seen) continue;
    PartRow row;
    row.part = part;
    fill(row, ranks, [&](std::size_t r) { return std::pair(a.ranks[r][p], b.ranks[r][p]); });
    const Policy moves = step_of(plans.front()).candidate.policy;
    Bytes resident_state{0};
    for (std::size_t r = 0; r < ranks; ++r) {
      const Bytes there = state_at_peak(plan_of(resident_plans[r], part), bounded_states(moves));
      resident_state = r == 0 ? there : std::min(resident_state, there);
      const Bytes state = state_peak(plan_of(plans[r], part));
      const std::optional<Bytes> bound = state_bound(step_of(plans[r]));
      // Of the rank that is nearest to its bound, or over it.
      if (r == 0 || (bound && state - *bound > row.state - *row.bound)) {
        row.state = state;
        row.bound = bound;
      }
    }
    row.demand = demand_of(moves, part, resident_state);
    rows.push_back(row);
  }
  PartRow all;
  all.demand = Demand::lower;
  fill(all, ranks, [&](std::size_t r) { return std::pair(whole(a.ranks[r]), whole(b.ranks[r])); });
  for (const PartRow& row : rows) all.state = std::max(all.state, row.state);
  rows.push_back(all);
  return rows;
}

}  // namespace

std::string_view name_of(Demand demand) {
  switch (demand) {
    case Demand::none:
      return "none";
    case Demand::not_higher:
      return "not higher";
    case Demand::lower:
      return "lower";
  }
  return "";
}

bool PartRow::met() const {
  switch (demand) {
    case Demand::none:
      return true;
    case Demand::not_higher:
      return policy <= resident;
    case Demand::lower:
      return policy < resident;
  }
  return false;
}

std::vector<PartRow> compare_parts(const PartsOf& resident, const PartsOf& policy) {
  std::vector<PartRow> rows = rows_of(resident, policy, false);
  for (PartRow& row : rows_of(resident, policy, true)) rows.push_back(row);
  return rows;
}

std::string unplanned(const LifeRecord& life) {
  for (const LegRecord& leg : life)
    for (std::size_t r = 0; r < leg.numbers.size(); ++r)
      for (const PartPeak& peak : leg.numbers[r].peaks)
        if (peak.live != peak.planned)
          return fmt::format("{}, rank {}, {}: {} live instead of {} as planned", name_of(leg.kind), leg.ranks[r],
                             name_of(peak.part), format_bytes(peak.live), format_bytes(peak.planned));
  return "";
}

}  // namespace ebb::replay
