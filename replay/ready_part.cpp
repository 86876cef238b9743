#include "replay/ready_part.hpp"

#include <algorithm>
#include <utility>

#include "models/errors.hpp"
#include "models/live_meter.hpp"

namespace ebb::replay {

namespace {

template <class Kind>
bool some(const std::vector<Ready>& actions) {
  return std::any_of(actions.begin(), actions.end(), [](const Ready& a) { return std::holds_alternative<Kind>(a); });
}

Bytes planned_peak(const Plan& plan) {
  LiveMeter meter(initial_device_bytes(plan));
  for (const Op& op : plan.ops) {
    meter.enter(op.phase);
    const bool memory = op.kind == OpKind::allocate || op.kind == OpKind::release;
    if (!memory || plan.buffers[op.buffer.index].memory != Memory::device) continue;
    const Bytes bytes = plan.buffers[op.buffer.index].bytes;
    meter.change(op.kind == OpKind::allocate ? bytes : Bytes{-bytes.value});
  }
  return meter.peak();
}

}  // namespace

ReadyPart::ReadyPart(const Program& of)
    : program(of), actions(ready_actions(of)), issue(issue_plan(*of.plan)), planned(planned_peak(*of.plan)) {}

std::vector<const Program*> programs_of(const LifeRank& rank) {
  std::vector<const Program*> programs;
  const auto& init = rank.programs[static_cast<std::size_t>(LifePart::init)];
  if (!init) throw InputError({}, "the plans have no part init", "write the plans of all parts (ebb simulate --life)");
  programs.push_back(&*init);
  for (const auto& program : rank.programs)
    if (program && &*program != programs[0]) programs.push_back(&*program);
  return programs;
}

std::vector<std::unique_ptr<ReadyPart>> ready_parts(const std::vector<const Program*>& programs) {
  std::vector<std::unique_ptr<ReadyPart>> parts;
  for (const Program* program : programs) parts.push_back(std::make_unique<ReadyPart>(*program));
  const auto of = [&](LifePart part) -> ReadyPart* {
    const auto found =
        std::find_if(parts.begin(), parts.end(), [&](const auto& ready) { return ready->part() == part; });
    return found == parts.end() ? nullptr : found->get();
  };
  for (const auto& [step, skip] :
       {std::pair(LifePart::step, LifePart::skip), std::pair(LifePart::first_step, LifePart::first_skip)}) {
    ReadyPart* const a = of(step);
    ReadyPart* const b = of(skip);
    if (a != nullptr && b != nullptr && a->program.decision.valid())
      share_prefix(a->issue, b->issue, a->program.decision.index + 1);
  }
  return parts;
}

std::int64_t gemm_size(const ExecuteOptions& options, const std::vector<Ready>& actions) {
  return options.compute && some<Stand>(actions) ? kLargestGemm : 0;
}

InstrumentNeeds needs_of(const std::vector<std::unique_ptr<ReadyPart>>& parts, const ExecuteOptions& options) {
  InstrumentNeeds needs;
  for (const auto& part : parts)
    needs = largest(needs, instrument_needs(part->program, part->actions, gemm_size(options, part->actions)));
  return needs;
}

std::vector<int> cpus_of(const std::vector<std::unique_ptr<ReadyPart>>& parts, const RankPlace& place) {
  const bool works = std::any_of(parts.begin(), parts.end(), [](const auto& part) {
    return some<ReadyHostAdam>(part->actions) || some<HostMasters>(part->actions);
  });
  if (!works) return {};
  return share_of_cpus(place.node, place.index, place.sharers);
}

HostStoreOptions host_store(const std::vector<const Program*>& programs, int device) {
  HostStoreOptions options{.device = device};
  for (const Program* program : programs) {
    options.pinned = std::max(options.pinned, program->pinned);
    options.pageable = std::max(options.pageable, program->pageable);
  }
  return options;
}

Bytes instruments_needed(const LifeRank& rank, const ExecuteOptions& options) {
  return device_bytes(needs_of(ready_parts(programs_of(rank)), options));
}

}  // namespace ebb::replay
