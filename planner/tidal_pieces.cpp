#include "planner/tidal_pieces.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/errors.hpp"
#include "planner/device_state.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/tidal_memory.hpp"

namespace ebb {

namespace {

/// What is kept lies tensor by tensor, each rounded up as the allocator does (by up to a MiB): more than its pieces.
/// That much less may be kept. Fewer kept pieces are a part of these tensors, of which the first may be cut once more.
void make_room_for_rounding(const RankModel& rank, const std::vector<OwnedRun>& chunks, std::int64_t moving,
                            TideProblem& p) {
  const Precision& precision = rank.job->precision;
  const ElementRange kept{chunks[static_cast<std::size_t>(moving)].range.begin, chunks.back().range.end};
  const Bytes allocated = allocated_state(precision, cut_shards(rank, kept), held_states(precision));
  const Bytes rounding = allocated - bytes_of(kept.numel(), precision.state_bytes()) + Bytes{3 << 20};
  const auto less = [&](Bytes room) { return std::max(Bytes{0}, room - rounding); };
  for (TideRoom& entry : p.rise) entry.room = less(entry.room);
  for (TideRoom& entry : p.fall) entry.room = less(entry.room);
  p.step_room = std::max(p.piece, less(p.step_room));
}

/// Elements by piece: those that stay have the last ones, each kind ascending in the order of updates.
void give_elements(const std::vector<OwnedRun>& chunks, TidalPieces& pieces) {
  const TideSchedule& schedule = pieces.schedule;
  pieces.moves.resize(static_cast<std::size_t>(schedule.moving));
  std::uint32_t next = 0;
  for (const bool stays : {false, true}) {
    if (stays) pieces.first_tail = next;
    for (std::int64_t k = 0; k < schedule.moving; ++k) {
      if (schedule.stays(k) != stays) continue;
      pieces.moves[static_cast<std::size_t>(k)] = {chunks[next], next, schedule.arrives(k), stays};
      ++next;
    }
  }
  const auto begin_of = [&](std::uint32_t chunk) {
    return chunk < chunks.size() ? chunks[chunk].range.begin : chunks.back().range.end;
  };
  pieces.on_host = {0, begin_of(pieces.first_tail)};
  pieces.kept = {begin_of(next), chunks.back().range.end};
}

TidalPieces cut_and_place(const RankModel& rank, const Candidate& candidate) {
  TidalPieces pieces;
  pieces.numel = std::min(candidate.chunk_numel, rank.owned);
  pieces.room = tidal_room(rank, candidate);
  pieces.levels = tidal_levels(rank);
  if (rank.owned.value == 0) return pieces;
  TideProblem problem = pieces.room.problem;
  pieces.bytes = problem.piece;
  pieces.copy_out = std::max(Ticks{1}, to_ticks(problem.piece / problem.d2h));
  pieces.schedule = solve_tide(problem);
  const std::vector<OwnedRun> chunks = slot_chunks(rank, rank.job->precision, pieces.numel);
  if (pieces.schedule.kept > 0) {
    make_room_for_rounding(rank, chunks, pieces.schedule.moving, problem);
    pieces.schedule = solve_tide(problem);
  }
  give_elements(chunks, pieces);
  return pieces;
}

}  // namespace

std::shared_ptr<const TidalPieces> tidal_pieces(const RankModel& rank, const Candidate& candidate) {
  TidalMemory& memory = *rank.tidal;
  {
    const std::lock_guard lock(memory.mutex);
    const auto found = memory.pieces.find(candidate);
    if (found != memory.pieces.end()) return found->second;
  }
  auto pieces = std::make_shared<const TidalPieces>(cut_and_place(rank, candidate));
  const std::lock_guard lock(memory.mutex);
  return memory.pieces.emplace(candidate, std::move(pieces)).first->second;
}

BufferId tail_buffer(PlanBuilder& plan, const Precision& precision, const TidalPieces& pieces, const TidalPiece& piece,
                     bool initial) {
  EBB_ASSERT(piece.stays);
  const BufferId buffer =
      plan.buffer(fmt::format("tail {}", piece.chunk - pieces.first_tail), Memory::device, pieces.bytes, initial);
  plan.state(buffer, held_states(precision), piece.run.range, true);
  return buffer;
}

std::vector<Shard> cut_shards(const RankModel& rank, ElementRange range) {
  std::vector<Shard> cut;
  std::int64_t begin = 0;
  for (Shard shard : rank.shards) {
    const std::int64_t end = begin + shard.numel.value;
    const std::int64_t from = std::max(begin, range.begin);
    const std::int64_t to = std::min(end, range.end);
    if (from < to) {
      shard.numel = {to - from};
      shard.offset += Numel{from - begin};
      shard.start += Numel{from - begin};
      cut.push_back(shard);
    }
    begin = end;
  }
  return cut;
}

}  // namespace ebb
