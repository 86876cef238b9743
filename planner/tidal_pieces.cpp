// The room for state. A step's frame is written once without any state into a plan of its own; what is alive at each
// rise and fall of the activations, and in the step, is read off it, so that no byte is counted twice or forgotten.
//
// The default cap is the peak that chunked would have with a small chunk: what forward and backward take without state,
// or the step with three pieces where that is more.
#include "planner/tidal_pieces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include "models/errors.hpp"
#include "models/memory/torch_allocator.hpp"
#include "models/quantity_text.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/quantization.hpp"
#include "planner/slot_quantizer.hpp"
#include "planner/step_frame.hpp"
#include "sim/copy_rates.hpp"

namespace ebb {

/// Ranks of a stage have the same layers.
struct StageLevels {
  std::mutex mutex;
  std::optional<ActivationLevels> levels;
};

struct TidalMemory {
  std::shared_ptr<StageLevels> stage = std::make_shared<StageLevels>();
  std::mutex mutex;
  std::map<Candidate, std::shared_ptr<const TidalPieces>> pieces;
};

namespace {

constexpr std::int64_t kPlaces = 3;  // one comes in, one is updated, one leaves

/// Live bytes of a step without state.
struct Frame {
  Bytes start{0};             // before forward, gradients zeroed
  std::vector<Bytes> risen;   // by level, behind its allocation
  std::vector<Bytes> fallen;  // by level, behind its release
  Bytes step{0};              // highest, from finalize on
  Bytes peak{0};
};

Frame frame_of(const RankModel& rank, const ActivationLevels& levels, Numel piece) {
  Plan plan;
  plan.part = LifePart::step;
  PlanBuilder builder(plan, 128);
  FrameOptions options = standard_frame(rank);
  options.levels = &levels;
  StepFrame frame(builder, rank, options);
  Frame result;
  result.peak = builder.live();
  frame.zero_grads();
  result.start = builder.live();
  result.risen.resize(levels.levels.size());
  result.fallen.resize(levels.levels.size());
  frame.forward_backward(
      {.before_rise = [&](std::size_t k) { result.risen[k] = builder.live() + levels.levels[k].bytes; },
       .after_fall = [&](std::size_t k) { result.fallen[k] = builder.live(); }});
  for (const Bytes live : result.risen) result.peak = std::max(result.peak, live);
  const std::size_t before = plan.ops.size();
  result.step = builder.live();
  frame.finalize();
  SlotQuantizer quantizer(builder, rank, piece, static_cast<int>(kPlaces), Phase::step);
  // finalize() releases the norm again, and quantisation goes on when the state has left.
  Bytes live = result.step;
  for (std::size_t i = before; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    if (op.kind == OpKind::allocate) live += plan.buffers[op.buffer.index].bytes;
    if (op.kind == OpKind::release) live = live - plan.buffers[op.buffer.index].bytes;
    result.step = std::max(result.step, live);
  }
  return result;
}

/// Norm and clip, and the copies that they work on.
Ticks finalize_time(const RankModel& rank) {
  const std::int64_t size = grad_bytes_per_element(rank.job->precision);
  const Bytes bytes = bytes_of(rank.owned, 3 * size) + rank.footprint.step_temporaries;
  return to_ticks(bytes / rank.job->cluster.gpu.hbm.value);
}

/// Room never increases on the way up, nor decreases on the way down, whatever else comes and goes.
void state_room(const RankModel& rank, const Frame& frame, const ActivationLevels& levels, Bytes cap, TideProblem& p) {
  const auto room = [&](Bytes live) { return std::max(Bytes{0}, cap - live); };
  const std::size_t count = levels.levels.size();
  Bytes left = std::min(p.step_room, room(frame.start));
  for (std::size_t k = 0; k < count; ++k) {
    p.rise.push_back({levels.levels[k].rises, left});
    left = std::min(left, room(frame.risen[k]));
  }
  const Ticks peak = count > 0 ? levels.levels.back().falls : levels.forward;
  p.rise.push_back({peak, left});
  p.fall.push_back({Ticks{0}, left});
  for (std::size_t k = count; k-- > 0;) {
    const Ticks until = k > 0 ? levels.levels[k - 1].falls : levels.forward + levels.backward;
    left = std::max(left, std::min(p.step_room, room(frame.fallen[k])));
    p.fall.push_back({std::max(until - peak, p.fall.back().until), left});
  }
  p.fall.push_back({p.fall.back().until + finalize_time(rank), std::max(left, p.step_room)});
}

/// The levels take milliseconds for hundreds of layers, and candidates share them.
ActivationLevels levels_of(const RankModel& rank) {
  const auto walk = [&] { return activation_levels(*rank.job, *rank.stage, rank.compute, rank.footprint); };
  if (!rank.tidal) return walk();
  StageLevels& stage = *rank.tidal->stage;
  const std::lock_guard lock(stage.mutex);
  if (!stage.levels) stage.levels = walk();
  return *stage.levels;
}

struct MeasuredRoom {
  ActivationLevels levels;
  TidalRoom room;
};

MeasuredRoom measure(const RankModel& rank, const Candidate& candidate) {
  const Job& job = *rank.job;
  const Precision& precision = job.precision;
  EBB_ASSERT(candidate.chunk_numel.value > 0);
  MeasuredRoom m{levels_of(rank), {}};
  const Frame frame = frame_of(rank, m.levels, candidate.chunk_numel);
  TideProblem& p = m.room.problem;
  const Numel numel = std::min(candidate.chunk_numel, std::max(rank.owned, Numel{1}));
  p.piece = memory::allocated_bytes(bytes_of(numel, precision.state_bytes()));
  p.pieces = std::max<std::int64_t>(1, static_cast<std::int64_t>(slot_chunks(rank, precision, numel).size()));
  m.room.peak = frame.peak;
  m.room.step = frame.step;
  const Bytes usual = std::max(frame.peak, frame.step + p.piece * std::min(kPlaces, p.pieces));
  m.room.cap = candidate.cap.value > 0 ? candidate.cap : usual;
  const Bytes least = std::max(frame.peak, frame.step + p.piece);
  if (m.room.cap < least)
    throw InputError({},
                     fmt::format("a cap of {} is below the {} that rank {} takes with one piece of state",
                                 format_bytes(m.room.cap), format_bytes(least), rank.rank),
                     fmt::format("raise it, or leave it out: then it is {} here", format_bytes(usual)));
  p.step_room = m.room.cap - frame.step;
  state_room(rank, frame, m.levels, m.room.cap, p);
  const std::int64_t neighbours = std::min(job.parallel.gpus, job.cluster.gpus_per_host);
  const sim::CopyRates rates = sim::copy_rates(job.cluster, {.ranks_per_host = neighbours});
  p.h2d = rates.h2d;
  p.d2h = rates.d2h;
  p.both = rates.both;
  const Seconds update = bytes_of(numel, adam_bytes_per_element(precision, true)) / job.cluster.gpu.adam.value;
  p.adam_state = {static_cast<double>(bytes_of(numel, precision.state_bytes()).value) /
                  (update + job.cluster.gpu.kernel_floor.value).value};
  p.latency = job.cluster.host_link.latency.value;
  // The second pass reads masters from the host, so all of them are there when a step ends.
  p.may_stay = !quantizes_explicitly(precision);
  return m;
}

/// What is kept lies tensor by tensor, each rounded up: a little more than its pieces. That much less may be kept.
void make_room_for_rounding(const RankModel& rank, TideProblem& p) {
  const Bytes rounding{static_cast<std::int64_t>(3 * 512 * (rank.shards.size() + 1))};
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
  MeasuredRoom m = measure(rank, candidate);
  TideProblem& problem = m.room.problem;
  pieces.cap = m.room.cap;
  pieces.levels = m.levels;
  if (rank.owned.value == 0) return pieces;
  pieces.bytes = problem.piece;
  pieces.copy_out = std::max(Ticks{1}, to_ticks(problem.piece / problem.d2h));
  pieces.schedule = solve_tide(problem);
  if (pieces.schedule.kept > 0) {
    make_room_for_rounding(rank, problem);
    pieces.schedule = solve_tide(problem);
  }
  give_elements(slot_chunks(rank, rank.job->precision, pieces.numel), pieces);
  return pieces;
}

}  // namespace

TidalRoom tidal_room(const RankModel& rank, const Candidate& candidate) { return measure(rank, candidate).room; }

std::shared_ptr<TidalMemory> make_tidal_memory(const TidalMemory* same_stage) {
  auto memory = std::make_shared<TidalMemory>();
  if (same_stage != nullptr) memory->stage = same_stage->stage;
  return memory;
}

std::shared_ptr<const TidalPieces> tidal_pieces(const RankModel& rank, const Candidate& candidate) {
  const auto known = [&]() -> std::shared_ptr<const TidalPieces> {
    if (!rank.tidal) return nullptr;
    const std::lock_guard lock(rank.tidal->mutex);
    const auto found = rank.tidal->pieces.find(candidate);
    return found == rank.tidal->pieces.end() ? nullptr : found->second;
  };
  if (auto pieces = known()) return pieces;
  auto pieces = std::make_shared<const TidalPieces>(cut_and_place(rank, candidate));
  if (!rank.tidal) return pieces;
  const std::lock_guard lock(rank.tidal->mutex);
  return rank.tidal->pieces.emplace(candidate, std::move(pieces)).first->second;
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
