#include "planner/state_homes.hpp"

#include <algorithm>

#include "models/memory/torch_allocator.hpp"
#include "planner/chunking.hpp"
#include "planner/life_parts.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/owned_runs.hpp"
#include "planner/quantization.hpp"
#include "planner/slot_quantizer.hpp"
#include "planner/tidal_pieces.hpp"
#include "planner/windowed_parts.hpp"

namespace ebb {

namespace {

void add(const DeviceState& state, const Part& part, StateHomes& homes) {
  if (state.moments.valid()) homes.device.push_back({state.moments, kMoments, part});
  if (state.masters.valid()) homes.device.push_back({state.masters, kMaster, part});
}

StateWindow window_of(const Precision& precision, const Part& part) {
  return {.range = part.range,
          .tensors = part.tensors(),
          .bytes = allocated_state(precision, part.shards, kAllState),
          .masters = allocated_state(precision, part.shards, kMaster)};
}

/// A window a shard. `master_size`: of the tensor that masters are made in.
std::vector<StateWindow> shard_windows(const Part& part, std::int64_t master_size) {
  std::vector<StateWindow> windows;
  std::int64_t begin = part.range.begin;
  for (const Shard& shard : part.shards) {
    const std::int64_t end = begin + shard.numel.value;
    const Bytes bytes = memory::allocated_bytes(bytes_of(shard.numel, master_size));
    if (end > begin) windows.push_back({.range = {begin, end}, .tensors = 1, .bytes = bytes, .masters = bytes});
    begin = end;
  }
  return windows;
}

void chunked_homes(const RankModel& rank, const Candidate& candidate, StateHomes& homes) {
  homes.windowed = held_states(homes.precision);
  homes.host.push_back({homes.windowed, {0, rank.owned.value}});
  homes.builders = shard_windows(whole(rank), homes.master_size);
  std::int64_t begin = 0;
  for (const Chunk& chunk : chunk_by_numel(rank.shards, candidate.chunk_numel)) {
    const auto shards = std::span(rank.shards).subspan(chunk.first, chunk.count);
    homes.windows.push_back(window_of(homes.precision, {shards, {begin, begin + chunk.numel.value}}));
    begin += chunk.numel.value;
  }
}

StateWindow piece_window(const Precision& precision, ElementRange range) {
  return {.range = range,
          .tensors = 1,
          .bytes = memory::allocated_bytes(bytes_of(range.numel(), precision.state_bytes())),
          .masters = memory::allocated_bytes(bytes_of(range.numel(), precision.master_bytes()))};
}

void pipelined_homes(const RankModel& rank, const Candidate& candidate, StateHomes& homes) {
  homes.windowed = held_states(homes.precision);
  homes.packed = true;
  homes.host.push_back({homes.windowed, {0, rank.owned.value}});
  for (const OwnedRun& chunk : slot_chunks(rank, homes.precision, candidate.chunk_numel))
    homes.windows.push_back(piece_window(homes.precision, chunk.range));
  homes.builders = homes.windows;
}

/// The tail is on the device from the first step or a load with moments on.
void tidal_homes(PlanBuilder& plan, const RankModel& rank, const Candidate& candidate, StateHomes& homes) {
  const std::shared_ptr<const TidalPieces> kept_alive = tidal_pieces(rank, candidate);
  const TidalPieces& pieces = *kept_alive;
  homes.windowed = held_states(homes.precision);
  homes.packed = true;
  homes.cut = cut_shards(rank, pieces.kept);
  const Part kept{homes.cut, pieces.kept};
  add(device_state(plan, homes.precision, kept, kAllState, kKeptNames), kept, homes);
  const bool stays = moments_exist(plan.part()) || plan.part() == LifePart::load;
  const std::int64_t on_host = stays ? pieces.on_host.end : pieces.kept.begin;
  if (on_host > 0) homes.host.push_back({homes.windowed, {0, on_host}});
  std::vector<TidalPiece> by_chunk(pieces.moves.size());
  for (const TidalPiece& piece : pieces.moves) by_chunk[piece.chunk] = piece;
  for (const TidalPiece& piece : by_chunk) {
    const StateWindow window = piece_window(homes.precision, piece.run.range);
    homes.builders.push_back(window);
    if (!stays || !piece.stays) {
      homes.windows.push_back(window);
      continue;
    }
    const BufferId buffer = tail_buffer(plan, homes.precision, pieces, piece, moments_exist(plan.part()));
    homes.device.push_back({buffer, homes.windowed, Part{{}, piece.run.range}});
  }
}

void windowed_homes(PlanBuilder& plan, const RankModel& rank, const Candidate& candidate, StateHomes& homes) {
  homes.windowed = kMoments;
  std::size_t number = 0;
  for (const WindowedPart& part : windowed_parts(rank, candidate.chunk_size_mb, candidate.fraction)) {
    add(moved_masters(plan, homes.precision, part, number), part.moves, homes);
    add(kept_state(plan, homes.precision, part, number), part.stays, homes);
    if (part.moves.tensors() > 0) homes.host.push_back({kMoments, part.moves.range});
    for (const Part& chunk : part.chunks)
      homes.windows.push_back({.range = chunk.range,
                               .tensors = chunk.tensors(),
                               .bytes = moment_window_bytes(homes.precision, chunk.shards)});
    ++number;
  }
}

/// Its host steps fp32 copies whatever the parameters are.
void cpu_adam_homes(PlanBuilder& plan, const RankModel& rank, const Candidate& candidate, StateHomes& homes) {
  const auto [moves, stays] = hybrid_parts(rank, candidate.fraction);
  add(device_state(plan, homes.precision, stays, kAllState), stays, homes);
  homes.frame = hybrid_frame(rank, stays);
  homes.master_size = 4;
  homes.builders = shard_windows(moves, homes.master_size);
  homes.host_masters = moves;
  if (moves.tensors() == 0) return;
  homes.host.push_back({kMaster, moves.range});
  homes.host.push_back({kMoments, moves.range, Memory::pageable});
}

}  // namespace

void quantize_homes(PlanBuilder& plan, const RankModel& rank, const Candidate& candidate, Phase phase) {
  if (!quantizes_explicitly(precision_of(*rank.job, candidate.policy))) return;
  switch (candidate.policy) {
    case Policy::resident:
    case Policy::full_reload:
      return quantize_params(plan, rank, phase);
    case Policy::windowed: {
      std::vector<std::int64_t> cuts;
      for (const WindowedPart& part : windowed_parts(rank, candidate.chunk_size_mb, candidate.fraction))
        cuts.push_back(part.moves.range.end);
      return quantize_params(plan, rank, phase, cuts);
    }
    case Policy::chunked:
      return quantize_chunks(plan, rank, candidate.chunk_numel, 0, phase);
    case Policy::pipelined:
    case Policy::tidal: {
      const bool pipelined = candidate.policy == Policy::pipelined;
      const Numel numel = pipelined ? candidate.chunk_numel : std::min(candidate.chunk_numel, rank.owned);
      SlotQuantizer quantizer(plan, rank, numel, pipelined ? candidate.slots : kTidalQuantizedSlots, phase);
      quantizer.measure_all();
      return quantizer.quantize();
    }
    case Policy::cpu_adam:
      return;
  }
}

StateHomes state_homes(PlanBuilder& plan, const RankModel& rank, const Candidate& candidate) {
  StateHomes homes;
  homes.precision = precision_of(*rank.job, candidate.policy);
  homes.frame = standard_frame(rank);
  homes.master_size = homes.precision.master_bytes();
  switch (candidate.policy) {
    case Policy::resident:
    case Policy::full_reload: {
      const std::optional<Phase> ends =
          candidate.policy == Policy::full_reload ? std::optional(Phase::forward) : std::nullopt;
      add(device_state(plan, homes.precision, whole(rank), kAllState, {}, ends), whole(rank), homes);
      break;
    }
    case Policy::chunked:
      chunked_homes(rank, candidate, homes);
      break;
    case Policy::windowed:
      windowed_homes(plan, rank, candidate, homes);
      break;
    case Policy::cpu_adam:
      cpu_adam_homes(plan, rank, candidate, homes);
      break;
    case Policy::pipelined:
      pipelined_homes(rank, candidate, homes);
      break;
    case Policy::tidal:
      tidal_homes(plan, rank, candidate, homes);
      break;
  }
  return homes;
}

}  // namespace ebb
