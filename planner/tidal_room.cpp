// The room for state. A step's frame is written once without any state into a plan of its own; what is alive at each
// rise and fall of the activations, and in the step, is read off it, so that no byte is counted twice or forgotten.
//
// The default cap of one rank is the peak that chunked would have with a small chunk: what forward and backward take
// without state, or the step with three pieces where that is more. The job's is the largest of its ranks': every device
// must have that much, whichever rank it is, and a rank below it has more room for the same money.
#include "planner/tidal_room.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "models/errors.hpp"
#include "models/memory/torch_allocator.hpp"
#include "models/quantity_text.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/owned_runs.hpp"
#include "planner/quantization.hpp"
#include "planner/slot_quantizer.hpp"
#include "planner/tidal_memory.hpp"
#include "sim/copy_rates.hpp"

namespace ebb {

namespace {

constexpr std::int64_t kPlaces = 3;  // one comes in, one is updated, one leaves

TidalFrame frame_of(const RankModel& rank, const ActivationLevels& levels) {
  Plan plan;
  plan.part = LifePart::step;
  PlanBuilder builder(plan, 128);
  StepFrame frame(builder, rank, tidal_frame(rank, levels));
  TidalFrame result;
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
  // Its slots, whose size is a piece's, come when the state has left.
  SlotQuantizer quantizer(builder, rank, std::max(rank.owned, Numel{1}), 1, Phase::step);
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
void state_room(const RankModel& rank, const TidalFrame& frame, const ActivationLevels& levels, Bytes cap,
                TideProblem& p) {
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

/// It does not depend on the candidate.
TidalFrame frame_of(const RankModel& rank) {
  TidalMemory& memory = *rank.tidal;
  const ActivationLevels& levels = tidal_levels(rank);
  const std::lock_guard lock(memory.mutex);
  if (!memory.frame) memory.frame = frame_of(rank, levels);
  return *memory.frame;
}

/// A piece's buffer.
Bytes piece_bytes(const RankModel& rank, Numel numel) {
  return memory::allocated_bytes(bytes_of(numel, rank.job->precision.state_bytes()));
}

Numel piece_numel(const RankModel& rank, Numel wanted) { return std::min(wanted, std::max(rank.owned, Numel{1})); }

std::int64_t count_pieces(const RankModel& rank, Numel numel) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(slot_chunks(rank, rank.job->precision, numel).size()));
}

/// What the rank would take by itself.
Bytes usual_cap(const RankModel& rank, Numel wanted) {
  const TidalFrame frame = frame_of(rank);
  const Numel numel = piece_numel(rank, wanted);
  const bool many = rank.owned.value > (kPlaces - 1) * numel.value;  // however they are cut
  const std::int64_t places = many ? kPlaces : std::min(kPlaces, count_pieces(rank, numel));
  return std::max(frame.peak, frame.step + piece_bytes(rank, numel) * places);
}

/// The largest of the job's ranks that its set names.
Bytes largest_cap(const RankModel& rank, Numel wanted) {
  JobCaps& job = *rank.tidal->job;
  const std::lock_guard lock(job.mutex);
  const auto found = job.caps.find(wanted);
  if (found != job.caps.end()) return found->second;
  if (job.ranks == nullptr) {
    job.own = std::make_unique<RankSet>(*rank.job);
    job.ranks = &job.own->ranks();
  }
  Bytes cap{0};
  for (const RankModel& other : *job.ranks) cap = std::max(cap, usual_cap(other, wanted));
  job.caps.emplace(wanted, cap);
  return cap;
}

/// The job's. A stage that the set leaves out holds no more than the one that stands for it (ranks.hpp); a rank that it
/// leaves out can own a few elements more than its stage's others, and then has its own.
Bytes default_cap(const RankModel& rank, Numel wanted) {
  return std::max(largest_cap(rank, wanted), usual_cap(rank, wanted));
}

/// Rounded, but where that makes them look the same.
std::pair<std::string, std::string> texts_of(Bytes a, Bytes b) {
  std::pair<std::string, std::string> texts{format_bytes(a), format_bytes(b)};
  if (texts.first == texts.second && a != b)
    texts = {fmt::format("{} bytes", a.value), fmt::format("{} bytes", b.value)};
  return texts;
}

/// Where the job says it; an option has that place in the job, too, where it has become part of it.
Place place_of_cap(const Job& job, Bytes cap) {
  const auto found = job.places.find("offload.cap");
  return found != job.places.end() && job.offload.cap == cap ? found->second : Place{"--cap"};
}

void check_cap(const RankModel& rank, const Candidate& candidate, Bytes cap, Bytes least) {
  if (cap >= least) return;
  const auto [given, taken] = texts_of(cap, least);
  throw InputError(
      place_of_cap(*rank.job, cap),
      fmt::format("a cap of {} is below the {} that rank {} takes with one piece of state", given, taken, rank.rank),
      fmt::format("use {} or more, or leave it out: then it is {}", exact_text(least),
                  exact_text(default_cap(rank, candidate.chunk_numel))));
}

}  // namespace

const ActivationLevels& tidal_levels(const RankModel& rank) {
  StageLevels& stage = *rank.tidal->stage;
  const std::lock_guard lock(stage.mutex);
  if (!stage.levels) stage.levels = activation_levels(*rank.job, *rank.stage, rank.compute, rank.footprint);
  return *stage.levels;
}

FrameOptions tidal_frame(const RankModel& rank, const ActivationLevels& levels) {
  FrameOptions options = standard_frame(rank);
  options.levels = &levels;
  return options;
}

TidalRoom tidal_room(const RankModel& rank, const Candidate& candidate) {
  const Job& job = *rank.job;
  const Precision& precision = job.precision;
  EBB_ASSERT(candidate.chunk_numel.value > 0);
  const TidalFrame frame = frame_of(rank);
  TidalRoom room;
  TideProblem& p = room.problem;
  const Numel numel = piece_numel(rank, candidate.chunk_numel);
  p.piece = piece_bytes(rank, numel);
  p.pieces = count_pieces(rank, numel);
  room.peak = frame.peak;
  room.step = frame.step;
  room.cap = candidate.cap.value > 0 ? candidate.cap : default_cap(rank, candidate.chunk_numel);
  check_cap(rank, candidate, room.cap, std::max(frame.peak, frame.step + p.piece));
  p.step_room = room.cap - frame.step;
  state_room(rank, frame, tidal_levels(rank), room.cap, p);
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
  return room;
}

std::shared_ptr<TidalMemory> make_tidal_memory(const TidalMemory* same_stage) {
  auto memory = std::make_shared<TidalMemory>();
  if (same_stage != nullptr) memory->stage = same_stage->stage;
  return memory;
}

void share_tidal_cap(const std::vector<RankModel>& ranks) {
  const auto job = std::make_shared<JobCaps>();
  job->ranks = &ranks;
  for (const RankModel& rank : ranks) rank.tidal->job = job;
}

void share_tidal_cap(const RankModel& rank, const RankModel& known) { rank.tidal->job = known.tidal->job; }

}  // namespace ebb
