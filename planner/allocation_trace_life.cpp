// Optimizer state in the parts of a job's life besides its steps: a checkpoint's load, a skipped step, a save. Sources:
// Megatron-LM pull request 6544 (a load reloads everything, and offloads it again afterwards; without optimizer state
// in the checkpoint, masters are filled chunk by chunk; a save reads host copies), dev d48bd6be0a
// (chunked_optimizer_state_offload.py: initialize_state_for_loading, load_state_dict_without_device_cast,
// synchronize_for_checkpoint), main's hybrid_optimizer.py (dummy_step); for the copies, checkpoint_tensors.hpp.
#include "planner/allocation_trace_state.hpp"
#include "planner/chunking.hpp"

namespace ebb {

std::vector<TraceTensor> StateTrace::copies(Range range, const TensorSizes& sizes) {
  std::vector<TraceTensor> tensors;
  for (std::size_t i = range.begin; i < range.end; ++i)
    for (const std::int64_t size : sizes) tensors.push_back(trace_.allocate(bytes_of(rank_.shards[i].numel, size)));
  return tensors;
}

void StateTrace::let_go(std::vector<TraceTensor>& tensors) {
  for (const TraceTensor tensor : tensors) trace_.release(tensor);
  tensors.clear();
}

void StateTrace::load(Start start) {
  if (start == Start::fresh) return;
  if (start == Start::resume)
    resume();
  else
    fill_masters();
}

/// Masters and moments come in; the policies that keep them on the host bring them there again.
void StateTrace::resume() {
  switch (candidate_.policy) {
    case Policy::resident:
      resume_on_device(all());
      break;
    case Policy::full_reload:
      resume_on_device(all());
      state(all(), Moves::out);
      away_ = true;
      break;
    case Policy::chunked:
      if (masters_at_init_) masters(all(), Moves::in);
      resume_on_device(all());
      state(all(), Moves::out);
      break;
    case Policy::windowed:
      resume_in_windows();
      break;
    case Policy::cpu_adam:
      resume_on_host();
      break;
    case Policy::pipelined:  // its host memory is read into
      break;
    case Policy::tidal:  // ... and what stays on the device is filled from there
      keep();
      tail(Moves::in);
      break;
  }
  has_moments_ = true;
}

/// Both passes of the loader, with masters that exist already (or come with the moments).
void StateTrace::resume_on_device(Range range) {
  const Job& job = *rank_.job;
  trace_.term(MemoryTerm::checkpoint);
  std::vector<TraceTensor> scaffold = copies(range, scaffold_tensors(job));
  for (std::size_t i = range.begin; i < range.end; ++i) {
    moments({i, i + 1}, Moves::in);
    if (!masters_at_init_) masters({i, i + 1}, Moves::in);
  }
  let_go(scaffold);
  trace_.term(MemoryTerm::checkpoint);
  std::vector<TraceTensor> handed_over = copies(range, handed_over_tensors(job));
  std::vector<TraceTensor> again = copies(range, reload_tensors(job));
  let_go(again);
  let_go(handed_over);
}

/// Chunk by chunk, with the window of masters there; it leaves at the end.
void StateTrace::resume_in_windows() {
  for (Manager& manager : managers_) {
    adam(manager.stays, true);
    for (const Range& chunk : manager.chunks) {
      adam(chunk, true);
      moments(chunk, Moves::out);
    }
    masters(manager.moves, Moves::out);
  }
  away_ = true;
}

/// A step with made-up gradients creates the state.
void StateTrace::resume_on_host() {
  trace_.term(MemoryTerm::gradient_copies);
  std::vector<TraceTensor> gradients = copies(all(), {size_of(rank_.job->precision.params)});
  step_on_host(true);
  let_go(gradients);
}

/// Parameters come in, masters are made from them. On the device that takes no memory; where they lie on the host they
/// pass through it: all at once, or by chunks.
void StateTrace::fill_masters() {
  if (!masters_at_init_) return;
  if (candidate_.policy == Policy::full_reload) {
    masters(all(), Moves::out);  // before the load
    masters(all(), Moves::in);
    masters(all(), Moves::out);
    away_ = true;
  }
  if (candidate_.policy != Policy::chunked) return;
  for (const Chunk& chunk : chunk_by_numel(rank_.shards, candidate_.chunk_numel)) {
    const Range range{chunk.first, std::size_t{chunk.first} + chunk.count};
    masters(range, Moves::in);
    masters(range, Moves::out);
  }
}

/// What finalize() brought in is waited for and stays as it is; nothing is written. Windows of moments go when the next
/// step begins, before it allocates anything.
void StateTrace::skip() {
  if (candidate_.policy == Policy::tidal && has_moments_) tail(Moves::in);
  for (Manager& manager : managers_) release_slots(manager);
}

/// What lies on the host is read there. On the device, the state dictionary copies what is not fp32.
void StateTrace::save() {
  const Job& job = *rank_.job;
  if (candidate_.policy == Policy::windowed) {
    for (const Manager& manager : managers_) masters(manager.moves, Moves::out);
    away_ = true;
  }
  trace_.term(MemoryTerm::checkpoint);
  std::vector<TraceTensor> handed_over;
  if (job.checkpoint.save_optimizer && candidate_.policy == Policy::resident) {
    std::vector<TraceTensor> unscaled = copies(all(), unscaled_tensors(job));
    let_go(unscaled);
    handed_over = copies(all(), handed_over_tensors(job));
  }
  const BucketGather gather = save_gather(job, *rank_.stage);
  std::vector<TraceTensor> pieces;
  for (std::int64_t i = 0; i <= gather.pieces && gather.pieces > 0; ++i)  // what is received, and what is sent
    pieces.push_back(trace_.allocate(bytes_of(gather.piece, 4)));
  let_go(pieces);
  let_go(handed_over);
}

}  // namespace ebb
