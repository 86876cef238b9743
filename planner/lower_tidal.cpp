// tidal: the transfers leave the step. State moves in packed pieces of exactly C elements, as pipelined's, but through
// whatever room forward and backward leave below a cap:
//
//   forward   what the last step left on the device (the tail) leaves; each level of activations waits for its room
//   backward  pieces come in as levels fall, in the order of places, as many as the schedule says arrive
//   step      Adam over the pieces in order; what has been updated leaves, what is missing comes into free places
//   after     the last pieces stay, and are the next step's tail
//
// Which pieces arrive, stay, never move, and where each lies, is solved beforehand (tidal_pieces.hpp). Live bytes never
// pass the cap in any order that the plan allows: a level's allocation stands behind the releases it needs, and those
// behind their copies out. A piece in a slot and a piece that stays have buffers of their own, because only the latter
// outlives the step; where a piece that stays follows one in a slot, the slot's storage is handed over between two
// updates, one piece ahead, so that no copy waits for Adam.
// A skipped step ends as it began: what had left comes back. Gathered FP8 weights: nothing stays, and a second pass
// follows (slot_quantizer.hpp).
#include <algorithm>
#include <optional>
#include <vector>

#include "models/errors.hpp"
#include "planner/device_state.hpp"
#include "planner/life_parts.hpp"
#include "planner/lowerings.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/slot_ops.hpp"
#include "planner/slot_quantizer.hpp"
#include "planner/step_frame.hpp"
#include "planner/tidal_pieces.hpp"

namespace ebb {

namespace {

FrameOptions frame_options(const RankModel& rank, const ActivationLevels& levels) {
  FrameOptions options = standard_frame(rank);
  options.levels = &levels;
  return options;
}

class Tidal {
 public:
  Tidal(PlanBuilder& plan, const RankModel& rank, const Candidate& candidate);
  void run();

 private:
  struct Buffer {
    BufferId id;
    bool alive = false;
    OpId free;  // the last copy out of it
  };
  struct Piece {
    OpId in;  // it is on the device after this
    bool filled = false;
  };

  std::size_t count() const { return pieces_.moves.size(); }
  bool stays(std::size_t k) const { return k >= pieces_.first_tail(); }
  std::size_t place(std::size_t k) const {
    return static_cast<std::size_t>(pieces_.schedule.place(static_cast<std::int64_t>(k)));
  }
  /// The piece before it in its place.
  std::optional<std::size_t> before(std::size_t k) const {
    const auto places = static_cast<std::size_t>(pieces_.schedule.places);
    return k < places ? std::nullopt : std::optional(k - places);
  }
  Buffer& buffer_of(std::size_t k) { return stays(k) ? tail_[k - pieces_.first_tail()] : slots_[place(k)]; }
  std::vector<std::size_t> leaving_order() const;

  void tail_leaves();
  void make_room(Bytes bytes);
  void arrive(bool all);
  void fill(std::size_t k, Phase phase);
  void update(std::size_t k, SlotQuantizer& quantizer);
  void update_kept();
  void skip();
  void step();

  PlanBuilder& plan_;
  const RankModel& rank_;
  TidalPieces pieces_;
  StepFrame frame_;
  DeviceState kept_;
  std::vector<Buffer> tail_;           // in order of pieces
  std::vector<Buffer> slots_;          // by place
  std::vector<Piece> state_;           // by piece
  std::vector<std::size_t> arrivals_;  // pieces that may come in before the step, in the order of their places
  std::size_t arrived_ = 0;
  std::vector<std::size_t> leaves_;  // tail pieces that are still here, the next to leave last
};

Tidal::Tidal(PlanBuilder& plan, const RankModel& rank, const Candidate& candidate)
    : plan_(plan),
      rank_(rank),
      pieces_(tidal_pieces(rank, candidate)),
      frame_(plan, rank, frame_options(rank, pieces_.levels)),
      kept_(device_state(plan, rank.job->precision, pieces_.kept_part(), kAllState, kKeptNames)) {
  const bool there = moments_exist(plan.part());
  for (std::size_t k = pieces_.first_tail(); k < count(); ++k)
    tail_.push_back({tail_buffer(plan, rank.job->precision, pieces_, k, there), there, {}});
  slots_.resize(static_cast<std::size_t>(pieces_.schedule.places));
  state_.resize(count());
  const TideSchedule& schedule = pieces_.schedule;
  for (std::size_t k = 0; k < static_cast<std::size_t>(std::min<std::int64_t>(schedule.places, std::ssize(state_)));
       ++k)
    arrivals_.push_back(k);
  // Those that arrive before the step come by place; the others of the first round follow in the order of the step.
  std::sort(arrivals_.begin(), arrivals_.begin() + schedule.arrive,
            [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
}

/// By descending place: the nearest to the activations first.
std::vector<std::size_t> Tidal::leaving_order() const {
  std::vector<std::size_t> order;
  for (std::size_t k = pieces_.first_tail(); k < count(); ++k) order.push_back(k);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return place(a) > place(b); });
  return order;
}

void Tidal::tail_leaves() {
  if (!moments_exist(plan_.part())) return;
  leaves_ = leaving_order();
  for (const std::size_t k : leaves_) {
    Buffer& buffer = buffer_of(k);
    buffer.free = slot_copy(plan_, rank_, OpKind::copy_d2h, Phase::forward, kAllState, static_cast<std::uint32_t>(k),
                            pieces_.moves[k].range, buffer.id, OpId::none());
  }
  std::reverse(leaves_.begin(), leaves_.end());
}

/// For `bytes` more under the cap.
void Tidal::make_room(Bytes bytes) {
  while (!leaves_.empty() && plan_.live() + bytes > pieces_.cap) {
    Buffer& buffer = buffer_of(leaves_.back());
    plan_.release(buffer.id, Phase::forward, {buffer.free});
    buffer.alive = false;
    leaves_.pop_back();
  }
}

/// What fits now of what comes in before the step; `all`: of the pieces that find a place without another's leaving,
/// too.
void Tidal::arrive(bool all) {
  if (!moments_exist(plan_.part())) return;
  make_room(pieces_.cap);  // whatever is left of the tail: its turn comes again
  const std::size_t most = all ? arrivals_.size() : static_cast<std::size_t>(pieces_.schedule.arrive);
  for (; arrived_ < most && plan_.live() + pieces_.bytes <= pieces_.cap; ++arrived_)
    fill(arrivals_[arrived_], all ? Phase::finalize : Phase::backward);
}

/// Brings piece `k` in. Its place's storage is handed over where the buffer before it there is another.
void Tidal::fill(std::size_t k, Phase phase) {
  Buffer& buffer = buffer_of(k);
  if (const auto last = before(k)) {
    Buffer& gone = buffer_of(*last);
    if (&gone != &buffer && gone.alive) {
      plan_.release(gone.id, phase, {gone.free});
      gone.alive = false;
    }
  }
  if (!buffer.id.valid()) {
    buffer.id = plan_.buffer("slot", place(k), pieces_.bytes, Phase::step);
    plan_.state(buffer.id, held_states(rank_.job->precision), {}, true);
  }
  if (!buffer.alive) buffer.free = plan_.allocate(buffer.id, phase, static_cast<std::uint32_t>(k));
  buffer.alive = true;
  state_[k].in =
      fill_slot(plan_, rank_, phase, static_cast<std::uint32_t>(k), pieces_.moves[k].range, buffer.id, buffer.free);
  state_[k].filled = true;
}

void Tidal::update(std::size_t k, SlotQuantizer& quantizer) {
  const auto chunk = static_cast<std::uint32_t>(k);
  Buffer& buffer = buffer_of(k);
  const OpId stepped = slot_adam(plan_, rank_, chunk, pieces_.moves[k], buffer.id, state_[k].in);
  const OpId measured = quantizer.measure(chunk, stepped);
  if (stays(k)) return;
  buffer.free = slot_copy(plan_, rank_, OpKind::copy_d2h, Phase::step, kAllState, chunk, pieces_.moves[k].range,
                          buffer.id, measured);
}

void Tidal::update_kept() {
  if (pieces_.kept.empty()) return;
  const Precision& precision = rank_.job->precision;
  const Part part = pieces_.kept_part();
  come_into_being(plan_, precision, part, kept_);
  const OpId stepped = adam(plan_, precision, AdamKernel::fused, part, kept_.moments, {});
  cast_to_params(plan_, rank_, precision, part, kept_.masters, stepped);
}

/// What came in goes without a trace, and the tail is here again.
void Tidal::skip() {
  if (!moments_exist(plan_.part())) return;
  for (Buffer& slot : slots_) {
    if (slot.alive) plan_.release(slot.id, Phase::skip);
    slot.alive = false;
  }
  for (std::size_t k = pieces_.first_tail(); k < count(); ++k)
    if (!buffer_of(k).alive) fill(k, Phase::skip);
}

void Tidal::step() {
  SlotQuantizer quantizer(plan_, rank_, pieces_.numel, kTidalQuantizedSlots, Phase::step);
  for (std::size_t k = 0; k < count(); ++k) {
    if (!state_[k].filled) fill(k, Phase::step);
    // One ahead, where the piece before the next one in its place has been updated already.
    const std::size_t next = k + 1;
    if (next < count() && !state_[next].filled && (!before(next) || *before(next) < k)) fill(next, Phase::step);
    update(k, quantizer);
    if (static_cast<std::int64_t>(next) == pieces_.schedule.arrive) update_kept();
  }
  if (pieces_.schedule.arrive == 0) update_kept();
  if (std::any_of(slots_.begin(), slots_.end(), [](const Buffer& slot) { return slot.alive; }))
    plan_.add({.kind = OpKind::host_wait, .phase = Phase::step, .stream = kHost}, {plan_.last_on(kD2h)});
  for (Buffer& slot : slots_)
    if (slot.alive) plan_.release(slot.id, Phase::step, {slot.free});
  quantizer.quantize();
}

void Tidal::run() {
  tail_leaves();
  frame_.zero_grads();
  frame_.forward_backward({.before_rise = [this](std::size_t level) { make_room(pieces_.levels.levels[level].bytes); },
                           .after_fall = [this](std::size_t) { arrive(false); }});
  arrive(true);
  frame_.finalize();
  if (is_skip(plan_.part())) return skip();
  step();
  frame_.close();
}

}  // namespace

void lower_tidal(PlanBuilder& plan, const RankModel& rank, const Candidate& candidate) {
  Tidal(plan, rank, candidate).run();
}

}  // namespace ebb
