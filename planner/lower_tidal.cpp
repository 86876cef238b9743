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
#include <memory>
#include <optional>
#include <vector>

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

  std::size_t count() const { return pieces_.moves.size(); }
  const TidalPiece& piece(std::size_t k) const { return pieces_.moves[k]; }
  std::size_t place(std::size_t k) const {
    return static_cast<std::size_t>(pieces_.schedule.place(static_cast<std::int64_t>(k)));
  }
  /// The piece before it in its place.
  std::optional<std::size_t> before(std::size_t k) const {
    const auto places = static_cast<std::size_t>(pieces_.schedule.places);
    return k < places ? std::nullopt : std::optional(k - places);
  }
  Buffer& buffer_of(std::size_t k) {
    return piece(k).stays ? tail_[piece(k).chunk - pieces_.first_tail] : slots_[place(k)];
  }

  void tail_leaves();
  void copy_out(Ticks until);
  void make_room(Bytes bytes, Phase phase);
  void rise(std::size_t level);
  void arrive(std::size_t most, Phase phase);
  void fill(std::size_t k, Phase phase);
  void update(std::size_t k, SlotQuantizer& quantizer);
  void update_kept(std::int64_t until);
  void skip();
  void step();

  PlanBuilder& plan_;
  const RankModel& rank_;
  std::shared_ptr<const TidalPieces> shared_;
  const TidalPieces& pieces_;
  StepFrame frame_;
  std::vector<Shard> kept_shards_;
  DeviceState kept_;
  std::int64_t kept_updated_ = 0;        // elements
  std::vector<Buffer> tail_;             // by chunk
  std::vector<Buffer> slots_;            // by place
  std::vector<std::optional<OpId>> in_;  // by piece: it is on the device after this
  std::vector<std::size_t> arrivals_;    // pieces of the first round, in the order in which they come
  std::size_t first_arrivals_ = 0;       // those of them that come with backward
  std::size_t arrived_ = 0;
  std::vector<std::size_t> leaves_;  // pieces of the tail, the first to leave first
  std::size_t copied_ = 0;           // the first of them, whose copies out are written
  std::size_t left_ = 0;             // ... and whose room is free
};

Tidal::Tidal(PlanBuilder& plan, const RankModel& rank, const Candidate& candidate)
    : plan_(plan),
      rank_(rank),
      shared_(tidal_pieces(rank, candidate)),
      pieces_(*shared_),
      frame_(plan, rank, tidal_frame(rank, pieces_.levels)),
      kept_shards_(cut_shards(rank, pieces_.kept)),
      kept_(device_state(plan, rank.job->precision, {kept_shards_, pieces_.kept}, kAllState, kKeptNames)) {
  const bool there = moments_exist(plan.part());
  tail_.resize(static_cast<std::size_t>(pieces_.schedule.tail));
  slots_.resize(static_cast<std::size_t>(pieces_.schedule.places));
  in_.resize(count());
  // Those that arrive come by place, the others of the first round in the order of the step.
  for (std::size_t k = 0; k < count(); ++k) {
    if (piece(k).stays) buffer_of(k) = {tail_buffer(plan, rank.job->precision, pieces_, piece(k), there), there, {}};
    if (k < slots_.size()) arrivals_.push_back(k);
  }
  const auto rest =
      std::stable_partition(arrivals_.begin(), arrivals_.end(), [&](std::size_t k) { return piece(k).arrives; });
  first_arrivals_ = static_cast<std::size_t>(rest - arrivals_.begin());
  std::sort(arrivals_.begin(), rest, [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
}

/// The nearest to the activations first.
void Tidal::tail_leaves() {
  if (!moments_exist(plan_.part())) return;
  for (std::size_t k = 0; k < count(); ++k)
    if (piece(k).stays) leaves_.push_back(k);
  std::sort(leaves_.begin(), leaves_.end(), [&](std::size_t a, std::size_t b) { return place(a) > place(b); });
}

/// Those that begin by then on a link of their own. Copies stand in the plan among the computation beside which they
/// run, not before all of it: a device takes about a thousand commands ahead of a stream, and then the host waits.
void Tidal::copy_out(Ticks until) {
  for (; copied_ < leaves_.size() && until.value / pieces_.copy_out.value >= static_cast<std::int64_t>(copied_);
       ++copied_) {
    const std::size_t k = leaves_[copied_];
    Buffer& buffer = buffer_of(k);
    buffer.free = slot_copy(plan_, rank_, OpKind::copy_d2h, Phase::forward, kAllState, piece(k).chunk,
                            piece(k).run.range, buffer.id, OpId::none());
  }
}

/// For `bytes` more under the cap.
void Tidal::make_room(Bytes bytes, Phase phase) {
  for (; left_ < leaves_.size() && plan_.live() + bytes > pieces_.room.cap; ++left_) {
    if (left_ == copied_) copy_out(pieces_.copy_out * static_cast<std::int64_t>(copied_));
    Buffer& buffer = buffer_of(leaves_[left_]);
    plan_.release(buffer.id, phase, {buffer.free});
    buffer.alive = false;
  }
}

void Tidal::rise(std::size_t level) {
  const std::vector<ActivationLevel>& levels = pieces_.levels.levels;
  copy_out(level + 1 < levels.size() ? levels[level + 1].rises : pieces_.levels.forward);
  make_room(levels[level].bytes, Phase::forward);
}

/// What fits now of the first `most` arrivals.
void Tidal::arrive(std::size_t most, Phase phase) {
  if (!moments_exist(plan_.part())) return;
  // What no level needed the room of has been copied out, too: its turn comes again.
  make_room(pieces_.room.cap, phase);
  for (; arrived_ < most && plan_.live() + pieces_.bytes <= pieces_.room.cap; ++arrived_)
    fill(arrivals_[arrived_], phase);
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
  if (!buffer.alive) buffer.free = plan_.allocate(buffer.id, phase, piece(k).chunk);
  buffer.alive = true;
  in_[k] = fill_slot(plan_, rank_, phase, piece(k).chunk, piece(k).run.range, buffer.id, buffer.free);
}

void Tidal::update(std::size_t k, SlotQuantizer& quantizer) {
  Buffer& buffer = buffer_of(k);
  const OpId stepped = slot_adam(plan_, rank_, piece(k).chunk, piece(k).run, buffer.id, *in_[k]);
  const OpId measured = quantizer.measure(piece(k).chunk, stepped);
  if (piece(k).stays) return;
  buffer.free = slot_copy(plan_, rank_, OpKind::copy_d2h, Phase::step, kAllState, piece(k).chunk, piece(k).run.range,
                          buffer.id, measured);
}

/// Up to this element of what is kept.
void Tidal::update_kept(std::int64_t until) {
  const ElementRange range{pieces_.kept.begin + kept_updated_, pieces_.kept.begin + until};
  if (range.numel().value <= 0) return;
  kept_updated_ = until;
  const Precision& precision = rank_.job->precision;
  const std::vector<Shard> shards = cut_shards(rank_, range);
  const Part part{shards, range};
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
  OpId back;
  for (std::size_t k = 0; k < count(); ++k) {
    if (!piece(k).stays || buffer_of(k).alive) continue;
    fill(k, Phase::skip);
    back = *in_[k];
  }
  // The next part of the life begins when the host has come to this end.
  if (back.valid()) plan_.add({.kind = OpKind::host_wait, .phase = Phase::skip, .stream = kHost}, {back});
}

void Tidal::step() {
  come_into_being(plan_, rank_.job->precision, {kept_shards_, pieces_.kept}, kept_);
  SlotQuantizer quantizer(plan_, rank_, pieces_.numel, kTidalQuantizedSlots, Phase::step);
  for (std::size_t k = 0; k < count(); ++k) {
    if (!in_[k]) fill(k, Phase::step);
    // One ahead, where the piece before the next one in its place has been updated already.
    const std::size_t next = k + 1;
    if (next < count() && !in_[next] && (!before(next) || *before(next) < k)) fill(next, Phase::step);
    const std::int64_t kept = pieces_.schedule.kept_before(static_cast<std::int64_t>(k)) * pieces_.numel.value;
    update_kept(std::min(kept, pieces_.kept.numel().value));
    update(k, quantizer);
  }
  update_kept(pieces_.kept.numel().value);
  if (std::any_of(slots_.begin(), slots_.end(), [](const Buffer& slot) { return slot.alive; }))
    plan_.add({.kind = OpKind::host_wait, .phase = Phase::step, .stream = kHost}, {plan_.last_on(kD2h)});
  for (Buffer& slot : slots_)
    if (slot.alive) plan_.release(slot.id, Phase::step, {slot.free});
  quantizer.quantize();
}

void Tidal::run() {
  tail_leaves();
  copy_out({0});
  frame_.zero_grads();
  frame_.forward_backward({.before_rise = [this](std::size_t level) { rise(level); },
                           .after_fall = [this](std::size_t) { arrive(first_arrivals_, Phase::backward); }});
  arrive(arrivals_.size(), Phase::finalize);
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
