#include "replay/program_checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "models/errors.hpp"
#include "replay/placement.hpp"

namespace ebb::replay {

namespace {

constexpr std::array<std::pair<StateBits, const char*>, 4> kNames = {
    {{kExpAvg, "exp_avg"}, {kExpAvgSq, "exp_avg_sq"}, {kMaster, "masters"}, {kParams, "parameters"}}};

/// Owned elements of `state` that the part stores or fetches, ascending.
std::vector<ElementRange> moved(const Program& program, const OwnedElements& owned, StateBits state) {
  std::vector<ElementRange> ranges;
  const auto add = [&](const std::vector<CheckpointPiece>& pieces) {
    for (const CheckpointPiece& piece : pieces) {
      if (piece.state != state) continue;
      const std::int64_t begin = owned.of_shard(piece.shard).begin + piece.first.value;
      ranges.push_back({begin, begin + piece.numel.value});
    }
  };
  for (const Action& action : program.actions) {
    if (const auto* store = std::get_if<Store>(&action)) add(store->pieces);
    if (const auto* fetch = std::get_if<Fetch>(&action)) add(fetch->pieces);
  }
  std::sort(ranges.begin(), ranges.end(), [](ElementRange a, ElementRange b) { return a.begin < b.begin; });
  return ranges;
}

/// What must be moved; of load_params what it chose.
unsigned wanted(const Program& program, unsigned there) {
  const bool masters = program.plan->precision.master_bytes() > 0;
  switch (program.plan->part) {
    case LifePart::save:
      return unsigned{kMoments} | kParams | (masters ? unsigned{kMaster} : 0U);
    case LifePart::load:
    case LifePart::reload:
      return unsigned{kMoments} | (masters ? kMaster : kParams);
    case LifePart::load_params:
      return (there & kMaster) != 0 ? kMaster : kParams;
    default:
      return 0;
  }
}

}  // namespace

void check_checkpoint(const Program& program, const std::string& file) {
  const Plan& plan = *program.plan;
  const OwnedElements owned(plan);
  std::array<std::vector<ElementRange>, kNames.size()> ranges;
  unsigned there = 0;
  for (std::size_t s = 0; s < kNames.size(); ++s) {
    ranges[s] = moved(program, owned, kNames[s].first);
    if (!ranges[s].empty()) there |= kNames[s].first;
  }
  const unsigned all = there | wanted(program, there);
  for (std::size_t s = 0; s < kNames.size(); ++s) {
    if ((all & kNames[s].first) == 0) continue;
    const auto refuse = [&](const char* what, std::int64_t begin, std::int64_t end) {
      throw InputError({.file = file},
                       fmt::format("rank {}, {}: {} of elements [{}, {}) {}", plan.rank, name_of(plan.part),
                                   kNames[s].second, begin, end, what),
                       "write all plans again with one ebb");
    };
    const char* const left_out = plan.part == LifePart::save ? "are not stored" : "are not fetched";
    std::int64_t behind = 0;
    for (const ElementRange& range : ranges[s]) {
      if (range.begin < behind) refuse("come twice", range.begin, std::min(behind, range.end));
      if (range.begin > behind) refuse(left_out, behind, range.begin);
      behind = range.end;
    }
    if (behind < program.owned.value) refuse(left_out, behind, program.owned.value);
  }
}

}  // namespace ebb::replay
