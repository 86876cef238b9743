#include "replay/checkpoint_end.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <variant>

#include "models/errors.hpp"

namespace ebb::replay {

namespace {

constexpr std::array<StateBits, 4> kFileOrder = {kExpAvg, kExpAvgSq, kMaster, kParams};

const std::byte* of(const CheckpointPiece& piece, const HostParts& host) {
  return (piece.host == Memory::pinned ? host.pinned : host.pageable) + piece.host_at.value;
}

/// Masters that are made from parameters come out of the checkpoint as such.
bool from_parameters(const Plan& plan, const CheckpointPiece& piece) {
  return plan.part == LifePart::load_params && piece.state == kMaster;
}

}  // namespace

std::vector<checkpoint::Parameter> checkpoint_parameters(const Plan& plan) {
  std::vector<checkpoint::Parameter> parameters;
  for (const PlanParameter& parameter : plan.parameters) parameters.push_back({parameter.name, parameter.shape});
  if (parameters.empty() && !plan.shards.empty()) {
    throw InputError({}, fmt::format("rank {}: the plan does not name its parameters", plan.rank),
                     "write the plans with --life");
  }
  return parameters;
}

CheckpointTable checkpoint_table(const Program& save) {
  const Plan& plan = *save.plan;
  CheckpointTable table;
  table.parameters = checkpoint_parameters(plan);
  std::map<std::pair<StateBits, std::uint32_t>, Dtype> stored;
  for (const Action& action : save.actions) {
    const auto* store = std::get_if<Store>(&action);
    if (store == nullptr) continue;
    for (const CheckpointPiece& piece : store->pieces) stored.emplace(std::pair(piece.state, piece.shard), piece.type);
  }
  for (const StateBits state : kFileOrder) {
    for (std::uint32_t s = 0; s < plan.shards.size(); ++s) {
      const auto found = stored.find({state, s});
      if (found == stored.end()) continue;
      const PlanShard& shard = plan.shards[s];
      table.piece_of.emplace(found->first, table.pieces.size());
      table.pieces.push_back({shard.parameter, state, shard.offset, shard.numel, found->second});
    }
  }
  return table;
}

void CheckpointEnd::begin_save(const Program& save, const std::string& directory, const checkpoint::Description& what) {
  program_ = &save;
  table_ = checkpoint_table(save);
  writer_.emplace(directory, what, save.plan->rank, table_.parameters, table_.pieces);
}

void CheckpointEnd::store(const Store& store, const HostParts& host) {
  EBB_ASSERT(writer_.has_value());
  for (const CheckpointPiece& piece : store.pieces)
    writer_->write(table_.piece_of.at({piece.state, piece.shard}), piece.first, piece.numel, of(piece, host));
}

checkpoint::Written CheckpointEnd::end_save() {
  EBB_ASSERT(writer_.has_value());
  const checkpoint::Written written = writer_->finish();
  writer_.reset();
  return written;
}

void CheckpointEnd::begin_load(const Program& load, const checkpoint::Reader& reader) {
  program_ = &load;
  unsigned states = 0;
  for (const Action& action : load.actions) {
    const auto* fetch = std::get_if<Fetch>(&action);
    if (fetch == nullptr) continue;
    for (const CheckpointPiece& piece : fetch->pieces)
      states |= from_parameters(*load.plan, piece) ? kParams : piece.state;
  }
  reader.require(checkpoint_parameters(*load.plan), static_cast<std::uint8_t>(states), load.plan->precision);
  reader_ = &reader;
  bytes_ = {0};
  seconds_ = 0;
}

void CheckpointEnd::fetch(const Fetch& fetch, const HostParts& host) {
  EBB_ASSERT(reader_ != nullptr);
  const auto begin = std::chrono::steady_clock::now();
  const Plan& plan = *program_->plan;
  for (const CheckpointPiece& piece : fetch.pieces) {
    const PlanShard& shard = plan.shards[piece.shard];
    const std::string& name = plan.parameters[shard.parameter].name;
    const Numel offset = shard.offset + piece.first;
    auto* const to = const_cast<std::byte*>(of(piece, host));
    if (from_parameters(plan, piece)) {
      reader_->read_params_as_fp32(name, offset, piece.numel, reinterpret_cast<float*>(to));
    } else {
      reader_->read(name, piece.state, offset, piece.numel, piece.type, to);
    }
    bytes_ += bytes_of(piece.numel, size_of(piece.type));
  }
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace ebb::replay
