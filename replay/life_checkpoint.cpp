#include "replay/life_checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "models/errors.hpp"
#include "replay/checkpoint/manifest.hpp"

namespace ebb::replay {

namespace {

std::size_t number_of(StateBits state) {
  return static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(state)));
}

template <class Visit>
void each_piece(const Program& program, Visit visit) {
  for (const Action& action : program.actions) {
    if (const auto* store = std::get_if<Store>(&action))
      for (const CheckpointPiece& piece : store->pieces) visit(piece);
    if (const auto* fetch = std::get_if<Fetch>(&action))
      for (const CheckpointPiece& piece : fetch->pieces) visit(piece);
  }
}

/// What a plan that saves or loads has to move of each shard. With parameters alone it makes masters, or leaves them to
/// the first step.
std::vector<StateBits> states_of(const Program& program) {
  const Plan& plan = *program.plan;
  const bool masters = plan.precision.master_bytes() > 0;
  if (plan.part == LifePart::load_params) return {(checkpoint_states(program) & kMaster) != 0 ? kMaster : kParams};
  std::vector<StateBits> states = {kExpAvg, kExpAvgSq};
  if (masters) states.push_back(kMaster);
  if (!masters || plan.part == LifePart::save) states.push_back(kParams);
  return states;
}

}  // namespace

std::vector<checkpoint::Parameter> checkpoint_parameters(const Plan& plan) {
  std::vector<checkpoint::Parameter> parameters;
  parameters.reserve(plan.parameters.size());
  for (const PlanParameter& parameter : plan.parameters) parameters.push_back({parameter.name, parameter.shape});
  return parameters;
}

std::uint8_t checkpoint_states(const Program& program) {
  unsigned states = 0;
  each_piece(program, [&](const CheckpointPiece& piece) { states |= piece.state; });
  return static_cast<std::uint8_t>(states);
}

void require_for(const checkpoint::Reader& reader, const Program& load) {
  const bool params = load.plan->part == LifePart::load_params;
  reader.require(checkpoint_parameters(*load.plan), params ? std::uint8_t{kParams} : checkpoint_states(load),
                 load.plan->precision);
}

void require_all_moved(const Program& program, const std::string& file) {
  const Plan& plan = *program.plan;
  std::map<std::pair<StateBits, std::uint32_t>, std::vector<ElementRange>> moved;  // of each state and shard
  each_piece(program, [&](const CheckpointPiece& piece) {
    moved[{piece.state, piece.shard}].push_back({piece.first.value, (piece.first + piece.numel).value});
  });
  for (const StateBits state : states_of(program)) {
    for (std::uint32_t shard = 0; shard < plan.shards.size(); ++shard) {
      std::vector<ElementRange>& ranges = moved[{state, shard}];
      std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
      std::int64_t end = 0;
      for (const ElementRange& range : ranges)
        if (range.begin <= end) end = std::max(end, range.end);
      if (end >= plan.shards[shard].numel.value) continue;
      throw InputError({file},
                       fmt::format("rank {}, part {}: it {} no {} of \"{}\" from element {} of its shard on", plan.rank,
                                   name_of(plan.part), plan.part == LifePart::save ? "stores" : "fetches",
                                   checkpoint::name_of_state(state), plan.shards[shard].name, end),
                       "write the plans anew with ebb simulate JOB --policy P --life -o FILE");
    }
  }
}

std::string parameters_taken(const checkpoint::Reader& reader, std::span<const LifeRank> ranks) {
  std::set<std::string_view> known;
  for (const LifeRank& rank : ranks)
    for (const std::optional<Program>& program : rank.programs)
      if (program)
        for (const PlanParameter& parameter : program->plan->parameters) known.insert(parameter.name);
  std::string taken;
  for (const checkpoint::Parameter& parameter : reader.parameters())
    taken += known.contains(parameter.name) ? '1' : '0';
  return taken;
}

void require_origin(const checkpoint::Reader& reader, const TrainingOptions& training) {
  const TrainingOrigin& origin = reader.description().origin;
  if (origin.seed != training.seed)
    throw InputError({reader.path()},
                     fmt::format("its run began with seed {}, this one with {}", origin.seed, training.seed),
                     "a resume goes on with the first seed");
  if (origin.scaling != training.scaling)
    throw InputError({reader.path()}, "its run scales the loss by another rule than this one",
                     "a resume goes on with the first one");
}

SavedPieces::SavedPieces(const Program& save) {
  const Plan& plan = *save.plan;
  index_.resize(8);
  std::array<Dtype, 8> type{};
  each_piece(save, [&](const CheckpointPiece& piece) {
    std::vector<std::size_t>& index = index_[number_of(piece.state)];
    index.resize(plan.shards.size());
    type[number_of(piece.state)] = piece.type;
  });
  for (std::size_t s = 0; s < index_.size(); ++s) {
    for (std::uint32_t shard = 0; shard < index_[s].size(); ++shard) {
      const PlanShard& what = plan.shards[shard];
      index_[s][shard] = pieces_.size();
      if (what.numel.value > 0)
        pieces_.push_back({what.parameter, static_cast<StateBits>(1U << s), what.offset, what.numel, type[s]});
    }
  }
}

std::size_t SavedPieces::index_of(const CheckpointPiece& piece) const {
  return index_[number_of(piece.state)][piece.shard];
}

void fetch_piece(const checkpoint::Reader& reader, const Plan& plan, const CheckpointPiece& piece, std::byte* data) {
  const PlanShard& shard = plan.shards[piece.shard];
  const std::string& name = plan.parameters[shard.parameter].name;
  const Numel offset = shard.offset + piece.first;
  if (plan.part == LifePart::load_params && piece.state == kMaster)
    return reader.read_params_as_fp32(name, offset, piece.numel, reinterpret_cast<float*>(data));
  reader.read(name, piece.state, offset, piece.numel, piece.type, data);
}

checkpoint::Description describe_checkpoint(const Plan& plan, std::int64_t ranks, const TrainingPlace& place,
                                            const TrainingOptions& training) {
  return {.job = plan.job, .ranks = ranks, .place = place, .origin = origin_of(training), .precision = plan.precision};
}

}  // namespace ebb::replay
