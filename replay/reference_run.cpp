#include "replay/reference_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/errors.hpp"

namespace ebb::replay {

const Program& program_of(const LifeRank& rank, LifePart part) {
  const std::optional<Program>& program = rank.programs[static_cast<std::size_t>(part)];
  if (!program)
    throw InputError({}, fmt::format("there is no plan of part {}", ebb::name_of(part)),
                     "write the plans of all parts (ebb simulate --life)");
  return *program;
}

ReferenceRun::ReferenceRun(std::span<const Program> programs, const TrainingOptions& options,
                           std::optional<StreamKind> held_back, std::size_t most_on)
    : held_back_(held_back), most_on_(most_on) {
  for (const Program& program : programs) add_rank(program, options, ReferenceRank::Begin::step);
  for (const Program& program : programs) check_members(program);
}

ReferenceRun::ReferenceRun(std::span<const LifeRank> ranks, const TrainingOptions& options,
                           std::optional<StreamKind> held_back, std::size_t most_on)
    : lives_(ranks), held_back_(held_back), most_on_(most_on) {
  for (const LifeRank& rank : ranks) add_rank(program_of(rank, LifePart::init), options, ReferenceRank::Begin::life);
  for (const LifeRank& rank : ranks)
    for (const std::optional<Program>& program : rank.programs)
      if (program) check_members(*program);
}

void ReferenceRun::add_rank(const Program& program, const TrainingOptions& options, ReferenceRank::Begin begin) {
  if (!index_of_rank_.emplace(program.plan->rank, ranks_.size()).second)
    throw InputError({}, fmt::format("two plans of rank {}", program.plan->rank));
  ranks_.emplace_back(program, options, begin);
  progress_.emplace_back();
  enter(progress_.size() - 1);
}

void ReferenceRun::check_members(const Program& program) const {
  for (std::uint32_t i = 0; i < program.plan->ops.size(); ++i) {
    const Op& op = program.plan->ops[i];
    if (op.kind != OpKind::collective) continue;
    const CommGroup group = group_of(*program.plan, op);
    for (std::int64_t m = 0; m < std::min(group.members, std::int64_t{1} << 20); ++m) {
      const std::int64_t member = group.first + m * group.stride;
      if (!index_of_rank_.contains(member))
        throw InputError({}, fmt::format("{} meets rank {}, whose plan is not here", name(*program.plan, i), member),
                         "replay on the CPU all ranks of the job together: it must be a job of one host");
    }
  }
}

std::string ReferenceRun::name(const Plan& plan, std::uint32_t id) {
  const Op& op = plan.ops[id];
  return fmt::format("rank {}, op {} ({} {})", plan.rank, id, ebb::name_of(op.kind), ebb::name_of(op.work));
}

std::string ReferenceRun::name(std::size_t rank, std::uint32_t id) const { return name(ranks_[rank].plan(), id); }

/// The rank's ops by stream; how far they are stays as it is.
void ReferenceRun::enter(std::size_t rank) {
  const Plan& plan = ranks_[rank].plan();
  Progress& progress = progress_[rank];
  progress.streams.assign(plan.streams.size(), {});
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) progress.streams[plan.ops[i].stream.index].push_back(i);
  progress.next.resize(plan.streams.size());
  progress.waits.resize(plan.streams.size());
  progress.ended.resize(plan.ops.size());
}

/// The host of a rank looks at the norm: all ranks must see the same, or they would not meet again.
void ReferenceRun::decide(std::size_t rank, std::uint32_t op) {
  const bool finite = ranks_[rank].finite(op);
  if (!finite_) finite_ = finite;
  EBB_ASSERT(finite == *finite_);
  if (finite || !skip_) return;
  ranks_[rank].go_on_with(program_of(lives_[rank], *skip_));
  enter(rank);
}

/// The first op in program order that can run now: on a stream that is held back, or on the others.
std::optional<std::uint32_t> ReferenceRun::runnable(std::size_t rank, bool held) const {
  const Progress& progress = progress_[rank];
  const Plan& plan = ranks_[rank].plan();
  const OpId decision = ranks_[rank].program().decision;
  std::optional<std::uint32_t> first;
  for (std::size_t s = 0; s < progress.streams.size(); ++s) {
    if ((plan.streams[s].kind == held_back_) != held) continue;
    if (progress.waits[s] || progress.next[s] == progress.streams[s].size()) continue;
    const std::uint32_t op = progress.streams[s][progress.next[s]];
    if (first && *first < op) continue;
    if (skip_ && decision.valid() && op > decision.index && !progress.ended[decision.index]) continue;
    const auto deps = plan.deps_of(plan.ops[op]);
    if (std::all_of(deps.begin(), deps.end(), [&](OpId dep) { return progress.ended[dep.index]; })) first = op;
  }
  return first;
}

void ReferenceRun::finish(std::size_t rank, std::uint32_t op) {
  Progress& progress = progress_[rank];
  const std::size_t stream = ranks_[rank].plan().ops[op].stream.index;
  ranks_[rank].end(op);
  progress.ended[op] = true;
  progress.waits[stream] = false;
  ++progress.next[stream];
  if (skip_ && op == ranks_[rank].program().decision.index) decide(rank, op);
  if (!lives_.empty()) check_drained(rank, op);
}

/// When the host of a part that is no step has come to its end, the next part may begin: no copy may be in flight.
void ReferenceRun::check_drained(std::size_t rank, std::uint32_t op) {
  const Plan& plan = ranks_[rank].plan();
  const Progress& progress = progress_[rank];
  const std::size_t stream = plan.ops[op].stream.index;
  if (plan.part == LifePart::step || plan.part == LifePart::first_step) return;
  if (plan.streams[stream].kind != StreamKind::host || progress.next[stream] < progress.streams[stream].size()) return;
  std::int64_t copies = 0;
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    const bool copy = plan.ops[i].kind == OpKind::copy_h2d || plan.ops[i].kind == OpKind::copy_d2h;
    if (copy && !progress.ended[i]) ++copies;
  }
  ranks_[rank].left_in_flight(copies);
}

void ReferenceRun::arrive(std::size_t rank, std::uint32_t op) {
  const Plan& plan = ranks_[rank].plan();
  const CommGroup group = group_of(plan, plan.ops[op]);
  Meeting& meeting = meetings_[{group, progress_[rank].met[group]++}];
  if (meeting.arrived.empty()) {
    meeting.arrived.resize(static_cast<std::size_t>(group.members));
    meeting.missing = meeting.arrived.size();
  }
  for (const Member& other : meeting.arrived) {
    if (other.rank == nullptr || same_collective(other.rank->action(other.op), ranks_[rank].action(op))) continue;
    const auto index = static_cast<std::size_t>(other.rank - ranks_.data());
    throw InputError(
        {}, fmt::format("{} meets {}: they are not the same collective", name(rank, op), name(index, other.op)));
  }
  const auto place = static_cast<std::size_t>((plan.rank - group.first) / group.stride);
  meeting.arrived[place] = {&ranks_[rank], op};
  progress_[rank].waits[plan.ops[op].stream.index] = true;
  if (--meeting.missing > 0) return;
  exchange(meeting.arrived);
  for (const Member& member : meeting.arrived) finish(static_cast<std::size_t>(member.rank - ranks_.data()), member.op);
}

void ReferenceRun::take(std::size_t rank, std::uint32_t op) {
  ranks_[rank].run(op);
  if (ranks_[rank].plan().ops[op].kind == OpKind::collective) return arrive(rank, op);
  finish(rank, op);
}

bool ReferenceRun::done() const {
  return std::all_of(progress_.begin(), progress_.end(), [](const Progress& progress) {
    return std::find(progress.ended.begin(), progress.ended.end(), false) == progress.ended.end();
  });
}

void ReferenceRun::deadlock() const {
  for (const auto& [key, meeting] : meetings_) {
    if (meeting.missing == 0) continue;
    const auto here = std::find_if(meeting.arrived.begin(), meeting.arrived.end(),
                                   [](const Member& member) { return member.rank != nullptr; });
    const auto gone = std::find_if(meeting.arrived.begin(), meeting.arrived.end(),
                                   [](const Member& member) { return member.rank == nullptr; });
    const std::int64_t missing = key.first.first + (gone - meeting.arrived.begin()) * key.first.stride;
    const std::size_t other = index_of_rank_.at(missing);
    std::string there = "which has ended its step";
    for (std::size_t s = 0; s < progress_[other].streams.size(); ++s) {
      const Progress& progress = progress_[other];
      if (progress.waits[s])
        there = fmt::format("which waits in {}", name(other, progress.streams[s][progress.next[s]]));
    }
    throw InputError({},
                     fmt::format("deadlock: {} waits for rank {}, {}",
                                 name(static_cast<std::size_t>(here->rank - ranks_.data()), here->op), missing, there));
  }
  assertion_failed("an op can run unless a collective waits", __FILE__, __LINE__);
}

void ReferenceRun::begin() {
  meetings_.clear();
  finite_.reset();
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    Progress& progress = progress_[r];
    progress.next.assign(progress.streams.size(), 0);
    progress.waits.assign(progress.streams.size(), false);
    progress.ended.assign(ranks_[r].plan().ops.size(), false);
    progress.met.clear();
    ranks_[r].begin_step();
  }
}

void ReferenceRun::run_all() {
  // All ranks run whatever is not held back; only when none can go on does one op that is, of rank most_on_ last.
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      while (const auto op = runnable(r, false)) {
        take(r, *op);
        moved = true;
      }
    }
    for (std::size_t i = 1; i <= ranks_.size() && !moved; ++i) {
      const std::size_t r = (most_on_ + i) % ranks_.size();
      if (const auto op = runnable(r, true)) {
        take(r, *op);
        moved = true;
      }
    }
  }
  if (!done()) deadlock();
}

void ReferenceRun::step() {
  begin();
  run_all();
  for (ReferenceRank& rank : ranks_) rank.end_step();
}

LifePart ReferenceRun::part(LifePart part, std::optional<LifePart> skip) {
  const auto has = [&](LifePart wanted) {
    return std::all_of(lives_.begin(), lives_.end(), [&](const LifeRank& rank) {
      return rank.programs[static_cast<std::size_t>(wanted)].has_value();
    });
  };
  skip_ = skip && has(*skip) ? skip : std::nullopt;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const Program& program = program_of(lives_[r], part);
    if (part != LifePart::init) ranks_[r].adopt(program);
    enter(r);
  }
  begin();
  run_all();  // to the last op of every stream: the drain between parts (docs/life.md)
  return finite_ == false && skip_ ? *skip_ : part;
}

std::vector<RankNumbers> reference(std::span<const Program> programs, const ReferenceOptions& options) {
  check_reference_size(programs);
  for (const Program& program : programs)
    if (program.quantized)
      throw InputError({}, "quantised parameters come of masters: a step alone cannot begin with them",
                       "replay a life (ebb simulate --life)");
  ReferenceRun run(programs, options.training, options.held_back, options.most_on);
  for (int step = 0; step < options.steps; ++step) run.step();
  std::vector<RankNumbers> numbers;
  for (std::size_t r = 0; r < run.size(); ++r) numbers.push_back(run.rank(r).finish());
  return numbers;
}

}  // namespace ebb::replay
