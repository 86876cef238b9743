#include "replay/life_checkpoint.hpp"

#include <bit>

#include "models/errors.hpp"

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

checkpoint::Description describe_checkpoint(const Plan& plan, std::int64_t ranks, const TrainingPlace& place) {
  return {.job = plan.job, .ranks = ranks, .place = place, .precision = plan.precision};
}

}  // namespace ebb::replay
