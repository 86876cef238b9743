#include "planner/phase_ends.hpp"

#include <array>

namespace ebb {

namespace {

bool is_memory(const Op& op) { return op.kind == OpKind::allocate || op.kind == OpKind::release; }

/// One phase: its last working op, and the first op of what follows; none() where there is no such op.
struct PhaseEnd {
  OpId last;
  OpId follower;
};

std::array<PhaseEnd, kPhaseCount> phase_ends(const Plan& plan) {
  std::array<PhaseEnd, kPhaseCount> ends;
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    if (!is_memory(plan.ops[i])) ends[static_cast<std::size_t>(plan.ops[i].phase)].last = {i};
  }
  for (std::size_t p = 0; p < ends.size(); ++p) {
    if (!ends[p].last.valid()) continue;
    std::uint32_t i = ends[p].last.index + 1;
    while (i < plan.ops.size() && static_cast<std::size_t>(plan.ops[i].phase) == p) ++i;
    if (i < plan.ops.size()) ends[p].follower = {i};
  }
  return ends;
}

class PhaseLeaks {
 public:
  PhaseLeaks(const Plan& plan, std::vector<Hazard>& hazards)
      : plan_(plan), hazards_(hazards), ends_(phase_ends(plan)), lives_(plan.buffers.size()) {
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) lives_[b].alive = plan.buffers[b].initial;
  }
  void run();

 private:
  struct Life {
    bool alive = false;
    OpId began;  // none(): before the plan
  };

  void check_follower(OpId op);
  void check_after(OpId release);
  void report(OpId first, OpId second, BufferId buffer, Edge missing, std::string_view what);
  OpId next_release(BufferId buffer, OpId from) const;

  const Plan& plan_;
  std::vector<Hazard>& hazards_;
  std::array<PhaseEnd, kPhaseCount> ends_;
  std::vector<Life> lives_;  // by buffer
};

/// The next release of the buffer; none() when there is none.
OpId PhaseLeaks::next_release(BufferId buffer, OpId from) const {
  for (std::uint32_t i = from.index; i < plan_.ops.size(); ++i) {
    if (plan_.ops[i].kind == OpKind::release && plan_.ops[i].buffer == buffer) return {i};
  }
  return OpId::none();
}

void PhaseLeaks::report(OpId first, OpId second, BufferId buffer, Edge missing, std::string_view what) {
  const Buffer& of = plan_.buffers[buffer.index];
  std::string text = first.valid() ? describe(plan_, first) : std::string("the initial buffer");
  text.append(" ").append(what).append(" ").append(describe(plan_, second));
  text.append(", after the end of ").append(name_of(*of.ends_with)).append(" [").append(of.name).append("]");
  Hazard hazard{HazardKind::outlives_phase, first, second, buffer, std::nullopt, std::move(text)};
  if (missing.first.valid()) {
    hazard.text += describe(plan_, missing);
    hazard.missing = missing;
  } else {
    hazard.text += "; needs: a release before it";
  }
  hazards_.push_back(std::move(hazard));
}

void PhaseLeaks::check_follower(OpId op) {
  for (std::size_t p = 0; p < ends_.size(); ++p) {
    if (ends_[p].follower != op) continue;
    for (std::uint32_t b = 0; b < lives_.size(); ++b) {
      if (!lives_[b].alive || plan_.buffers[b].ends_with != static_cast<Phase>(p)) continue;
      report(lives_[b].began, op, {b}, {next_release({b}, op), op}, "is still alive at");
    }
  }
}

void PhaseLeaks::check_after(OpId release) {
  const Op& op = plan_.ops[release.index];
  const std::optional<Phase> phase = plan_.buffers[op.buffer.index].ends_with;
  if (!phase || !op.after.valid()) return;
  const OpId last = ends_[static_cast<std::size_t>(*phase)].last;
  if (!last.valid() || op.after <= last || plan_.ops[op.after.index].phase == *phase) return;
  // Only a life that this phase was to end: one that begins after it is another story.
  if (lives_[op.buffer.index].began.valid() && lives_[op.buffer.index].began > last) return;
  report(release, op.after, op.buffer, {release, op.after}, "hands storage back only with");
}

void PhaseLeaks::run() {
  for (std::uint32_t i = 0; i < plan_.ops.size(); ++i) {
    const Op& op = plan_.ops[i];
    check_follower({i});
    if (op.kind == OpKind::allocate) lives_[op.buffer.index] = {true, {i}};
    if (op.kind != OpKind::release) continue;
    check_after({i});
    lives_[op.buffer.index].alive = false;
  }
}

}  // namespace

void find_phase_leaks(const Plan& plan, std::vector<Hazard>& hazards) { PhaseLeaks(plan, hazards).run(); }

}  // namespace ebb
