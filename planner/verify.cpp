#include "planner/verify.hpp"

#include <algorithm>
#include <array>

#include "models/errors.hpp"
#include "models/op_order.hpp"
#include "planner/accesses.hpp"
#include "planner/content_tracker.hpp"
#include "planner/newer_state.hpp"
#include "planner/peak_bound.hpp"
#include "planner/phase_ends.hpp"
#include "planner/storage_tracker.hpp"

namespace ebb {

namespace {

class Verifier {
 public:
  explicit Verifier(const Plan& plan) : plan_(plan), order_(plan), newer_(plan) {
    storage_.reserve(plan.buffers.size());
    for (const Buffer& buffer : plan.buffers) storage_.emplace_back(buffer.initial);
  }
  std::vector<Hazard> run();

 private:
  static constexpr std::size_t kStates = 5;

  void report(HazardKind kind, OpId first, OpId second, BufferId buffer, std::string_view what, Edge missing = {});
  OpId next_allocation(BufferId buffer, OpId from) const;
  void check_issue(OpId id, const Op& op);
  void check_life(OpId id, const Op& op);
  void check_storage(OpId id, const Op& op, BufferId buffer, bool write);
  void check_homes(OpId id, const Op& op, const Accesses& accesses);
  bool may_stay(BufferId buffer) const;
  void check_content(OpId id, const Op& op, const Accesses& accesses);
  ContentTracker& content(Side side, std::size_t state, Counting counting) {
    return content_[(static_cast<std::size_t>(side) * kStates + state) * 2 + static_cast<std::size_t>(counting)];
  }

  const Plan& plan_;
  Order order_;
  OpId last_host_;
  std::vector<StorageTracker> storage_;                  // by buffer
  std::array<ContentTracker, 2 * kStates * 2> content_;  // side x state x counting
  NewerState newer_;
  std::vector<OpId> found_;  // scratch
  std::vector<Hazard> hazards_;
};

void Verifier::report(HazardKind kind, OpId first, OpId second, BufferId buffer, std::string_view what, Edge missing) {
  std::string text = describe(plan_, first);
  text.append(" ").append(what);
  if (second.valid()) text.append(" ").append(describe(plan_, second));
  if (buffer.valid()) text.append(" [").append(plan_.buffers[buffer.index].name).append("]");
  hazards_.push_back({kind, first, second, buffer, std::nullopt, std::move(text)});
  if (!missing.first.valid() || !missing.second.valid()) return;
  hazards_.back().text += describe(plan_, missing);
  hazards_.back().missing = missing;
}

/// none() when the buffer is not allocated from there on.
OpId Verifier::next_allocation(BufferId buffer, OpId from) const {
  for (std::uint32_t i = from.index; i < plan_.ops.size(); ++i) {
    if (plan_.ops[i].kind == OpKind::allocate && plan_.ops[i].buffer == buffer) return {i};
  }
  return OpId::none();
}

void Verifier::check_issue(OpId id, const Op& op) {
  if (plan_.streams[op.stream.index].kind == StreamKind::host) {
    last_host_ = id;
  } else if (last_host_.valid() && !order_.before(last_host_, id)) {
    report(HazardKind::issued_early, id, last_host_, BufferId::none(), "may start before it is issued, after",
           {last_host_, id});
  }
}

void Verifier::check_life(OpId id, const Op& op) {
  StorageTracker& storage = storage_[op.buffer.index];
  if (op.kind == OpKind::allocate) {
    if (storage.alive()) {
      report(HazardKind::leak, id, storage.allocated(), op.buffer, "allocates a buffer that is alive");
    } else if (storage.released().valid() && !order_.before(storage.released(), id)) {
      report(HazardKind::unordered_access, storage.released(), id, op.buffer, "is not ordered before",
             {storage.released(), id});
    }
    return storage.allocate(id);
  }
  if (!storage.alive()) {
    const HazardKind kind = storage.ever() ? HazardKind::double_release : HazardKind::use_before_allocate;
    return report(kind, id, storage.released(), op.buffer, "releases a buffer that is not alive");
  }
  if (storage.allocated().valid() && !order_.before(storage.allocated(), id)) {
    report(HazardKind::use_before_allocate, id, storage.allocated(), op.buffer, "may release before",
           {storage.allocated(), id});
  }
  found_.clear();
  storage.release(order_, id, op.after, found_);
  for (const OpId use : found_) {
    report(HazardKind::use_after_release, use, id, op.buffer, "may still run when the storage is handed back by",
           {use, id});
  }
}

void Verifier::check_storage(OpId id, const Op& op, BufferId buffer, bool write) {
  StorageTracker& storage = storage_[buffer.index];
  if (!storage.alive()) {
    if (storage.ever()) {
      report(HazardKind::use_after_release, id, storage.released(), buffer, "uses a buffer released by",
             {id, storage.released()});
    } else {
      report(HazardKind::use_before_allocate, id, OpId::none(), buffer, "uses a buffer that is not allocated yet",
             {next_allocation(buffer, id), id});
    }
    return;
  }
  if (storage.allocated().valid() && !order_.before(storage.allocated(), id)) {
    report(HazardKind::use_before_allocate, id, storage.allocated(), buffer, "may start before",
           {storage.allocated(), id});
  }
  storage.use(order_, id, op, write, found_);
}

/// State that an op works on and that its own buffer does not hold must be somewhere on the device: a state-dict pass
/// that reads it while all buffers that hold it are released reads storage of somebody else. In a slot that is reused
/// it must also be gone through before the next elements come.
void Verifier::check_homes(OpId id, const Op& op, const Accesses& accesses) {
  unsigned wanted = 0;
  for (const ContentAccess& access : accesses.contents())
    if (access.side == Side::device) wanted |= access.states & kAllState;
  if (op.buffer.valid()) wanted &= ~unsigned{plan_.buffers[op.buffer.index].states};
  for (unsigned state = 1; state <= kMaster; state <<= 1U) {
    if ((wanted & state) == 0) continue;
    BufferId gone;
    bool alive = false;
    for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b) {
      const Buffer& buffer = plan_.buffers[b];
      if (buffer.memory != Memory::device || (buffer.states & state) == 0) continue;
      const bool apart = buffer.holds.begin < buffer.holds.end &&
                         (op.range.end <= buffer.holds.begin || buffer.holds.end <= op.range.begin);
      if (apart) continue;
      if (storage_[b].alive()) {
        alive = true;
        const bool slot = buffer.holds.numel().value == 0 && storage_[b].range() == op.range;
        if (slot && op.range.numel().value > 0 && BufferId{b} != op.buffer)
          storage_[b].use(order_, id, op, false, found_);
        continue;
      }
      const bool later = !gone.valid() || storage_[gone.index].released() < storage_[b].released();
      if (storage_[b].released().valid() && later) gone = {b};
    }
    if (alive || !gone.valid()) continue;
    const OpId released = storage_[gone.index].released();
    report(HazardKind::use_after_release, id, released, gone, "reads state whose storage was released by",
           {id, released});
  }
}

/// Parts of life that make state may leave it.
bool Verifier::may_stay(BufferId id) const {
  const Buffer& buffer = plan_.buffers[id.index];
  if (buffer.initial) return true;
  const bool makes = plan_.part == LifePart::init || plan_.part == LifePart::first_step ||
                     plan_.part == LifePart::load || plan_.part == LifePart::load_params;
  if (!makes || (buffer.role != Role::state && buffer.role != Role::grad_copies)) return false;
  return buffer.ends_with != plan_.ops[storage_[id.index].allocated().index].phase;
}

void Verifier::check_content(OpId id, const Op& op, const Accesses& accesses) {
  const Counting other = accesses.counting == Counting::owned ? Counting::padded : Counting::owned;
  for (const ContentAccess& access : accesses.contents()) {
    for (std::size_t state = 0; state < kStates; ++state) {
      if (!((access.states >> state) & 1U)) continue;
      content(access.side, state, accesses.counting).access(order_, id, op.range, access.write, found_);
      content(access.side, state, other).test_all(order_, id, access.write, found_);
    }
  }
}

std::vector<Hazard> Verifier::run() {
  for (std::uint32_t i = 0; i < plan_.ops.size(); ++i) {
    const OpId id{i};
    const Op& op = plan_.ops[i];
    check_issue(id, op);
    if (op.kind == OpKind::allocate || op.kind == OpKind::release) {
      check_life(id, op);
      newer_.run(id, op, hazards_);
      continue;
    }
    const Accesses accesses = accesses_of(op);
    found_.clear();
    if (accesses.storage) check_storage(id, op, op.buffer, accesses.storage_write);
    if (op.host_buffer.valid()) check_storage(id, op, op.host_buffer, accesses.host_storage_write);
    if (op.kind == OpKind::kernel) check_homes(id, op, accesses);
    check_content(id, op, accesses);
    std::sort(found_.begin(), found_.end());
    found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
    for (const OpId earlier : found_) {
      report(HazardKind::unordered_access, earlier, id, op.buffer, "is not ordered before", {earlier, id});
    }
    newer_.run(id, op, hazards_);
  }
  newer_.finish(hazards_);
  find_phase_leaks(plan_, hazards_);
  for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b) {
    if (!storage_[b].alive() || may_stay({b})) continue;
    report(HazardKind::leak, storage_[b].allocated(), OpId::none(), BufferId{b}, "is never undone");
  }
  return std::move(hazards_);
}

/// Dependencies, `after` and streams must name what exists and, for ops, what comes earlier.
std::vector<Hazard> topology(const Plan& plan) {
  std::vector<Hazard> hazards;
  const auto report = [&](OpId op, OpId on) {
    hazards.push_back({HazardKind::not_topological, op, on, BufferId::none(), std::nullopt,
                       describe(plan, op) + " depends on op " + std::to_string(on.index) + ", which is not before it"});
  };
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    EBB_ASSERT(op.stream.index < plan.streams.size());
    EBB_ASSERT(op.buffer.index < plan.buffers.size() || !op.buffer.valid());
    EBB_ASSERT(op.host_buffer.index < plan.buffers.size() || !op.host_buffer.valid());
    for (const OpId dep : plan.deps_of(op)) {
      if (dep.index >= i) report({i}, dep);
    }
    if (op.after.valid() && op.after.index >= i) report({i}, op.after);
  }
  return hazards;
}

}  // namespace

std::vector<Hazard> verify(const Plan& plan) {
  std::vector<Hazard> hazards = topology(plan);
  if (!hazards.empty()) return hazards;
  return Verifier(plan).run();
}

std::vector<Hazard> verify(const Plan& plan, Bytes budget) {
  std::vector<Hazard> hazards = topology(plan);
  if (!hazards.empty()) return hazards;
  hazards = Verifier(plan).run();
  find_excess(plan, budget, hazards);
  return hazards;
}

}  // namespace ebb
