// StateTrace of tidal: pieces that a step holds and lets go, pieces that stay behind it, and what never leaves. The
// tail goes at once when the next step begins, where the plan lets it go piece by piece as levels rise: what is live at
// the peak and between steps is the same. Also not here: that pieces and activations share one arena; a caching
// allocator serves pieces from the blocks that activations leave.
#include <algorithm>

#include "planner/allocation_trace_state.hpp"
#include "planner/tidal_pieces.hpp"

namespace ebb {

const TidalPieces& StateTrace::tide() {
  if (!tide_) tide_ = tidal_pieces(rank_, candidate_);
  return *tide_;
}

void StateTrace::keep() {
  if (kept_here_) return;
  kept_here_ = true;
  for (const Shard& shard : cut_shards(rank_, tide().kept)) {
    for (const Dtype moment : {precision_.exp_avg, precision_.exp_avg_sq}) {
      trace_.term(MemoryTerm::moments);
      trace_.allocate(trace_.keep(), bytes_of(shard.numel, size_of(moment)));
    }
    trace_.term(MemoryTerm::masters);
    trace_.allocate(trace_.keep(), bytes_of(shard.numel, precision_.master_bytes()));
  }
}

void StateTrace::tail(Moves moves) {
  const bool comes = moves == Moves::in;
  if (tail_here_ == comes) return;
  tail_here_ = comes;
  trace_.term(MemoryTerm::moments);
  tail_.resize(static_cast<std::size_t>(tide().schedule.tail));
  for (TraceTensor& tensor : tail_) {
    if (!tensor.valid()) tensor = trace_.keep();
    if (comes)
      trace_.allocate(tensor, tide().bytes);
    else
      trace_.release_kept(tensor);
  }
}

void StateTrace::step_tidal() {
  keep();
  tail(Moves::in);
  step_in_slots(tide().schedule.places - tide().schedule.tail, tide().numel);
}

}  // namespace ebb
