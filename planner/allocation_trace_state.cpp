// Sources: Megatron-LM main d98e8a64dd (core/optimizer/distrib_optimizer.py: a master is a bf16 clone cast to fp32;
// hybrid_optimizer.py), pull request 6544 (optimizer_state_offloader.py), dev d48bd6be0a
// (chunked_optimizer_state_offload.py); torch 2.11's AdamW and Transformer Engine's FusedAdam create both moments of a
// parameter one after the other in the first step.
#include "planner/allocation_trace_state.hpp"

#include <algorithm>
#include <utility>

#include "planner/chunking.hpp"
#include "planner/lowerings.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/quantization.hpp"

namespace ebb {

namespace {

/// Masters that Transformer Engine's optimizer manages appear in the first step, like moments.
bool masters_at_init(const Precision& precision) {
  return !precision.optimizer_holds_masters() && precision.master_bytes() > 0;
}

/// Calls visit(begin, end) for each run of [begin, end) in one parameter group: optimizers work group by group.
template <class Visit>
void for_each_group(const std::vector<Shard>& shards, std::size_t begin, std::size_t end, Visit visit) {
  while (begin < end) {
    std::size_t stop = begin + 1;
    while (stop < end && shards[stop].group == shards[begin].group && shards[stop].optimizer == shards[begin].optimizer)
      ++stop;
    visit(begin, stop);
    begin = stop;
  }
}

std::vector<TraceTensor> kept(TraceBuilder& trace, std::size_t count) {
  std::vector<TraceTensor> tensors(count);
  for (TraceTensor& tensor : tensors) tensor = trace.keep();
  return tensors;
}

}  // namespace

StateTrace::StateTrace(TraceBuilder& trace, const RankModel& rank, const Candidate& candidate)
    : trace_(trace),
      rank_(rank),
      candidate_(candidate),
      precision_(precision_of(*rank.job, candidate.policy)),
      masters_at_init_(masters_at_init(precision_)),
      scratch_tensors_(adam_scratch_tensors(precision_, rank.job->adam_of(candidate.policy))),
      master_(kept(trace, rank.shards.size())),
      exp_avg_(kept(trace, rank.shards.size())),
      exp_avg_sq_(kept(trace, rank.shards.size())) {
  if (candidate.policy == Policy::cpu_adam) on_host_ = shards_on_host(rank, candidate.fraction);
  if (candidate.policy == Policy::windowed) split_managers();
}

/// An fp32 parameter is its own master.
void StateTrace::masters(Range range, Moves moves) {
  if (precision_.master_bytes() == 0) return;
  trace_.term(MemoryTerm::masters);
  for (std::size_t i = range.begin; i < range.end; ++i) {
    if (moves == Moves::in)
      trace_.allocate(master_[i], master_bytes(i));
    else
      trace_.release_kept(master_[i]);
  }
}

void StateTrace::moments(Range range, Moves moves) {
  trace_.term(MemoryTerm::moments);
  for (std::size_t i = range.begin; i < range.end; ++i) {
    if (moves == Moves::in) {
      trace_.allocate(exp_avg_[i], bytes(i, size_of(precision_.exp_avg)));
      if (rank_.shards[i].moments > 1) trace_.allocate(exp_avg_sq_[i], bytes(i, size_of(precision_.exp_avg_sq)));
    } else {
      trace_.release_kept(exp_avg_[i]);
      if (rank_.shards[i].moments > 1) trace_.release_kept(exp_avg_sq_[i]);
    }
  }
}

/// Where the optimizer manages masters, its copies walk over moments and masters together.
void StateTrace::state(Range range, Moves moves) {
  if (!masters_at_init_) {
    for (std::size_t i = range.begin; i < range.end; ++i) {
      moments({i, i + 1}, moves);
      masters({i, i + 1}, moves);
    }
    return;
  }
  moments(range, moves);
  masters(range, moves);
}

/// One optimizer call, group by group. `creates`: its shards' state, but for masters that exist already.
void StateTrace::adam(Range range, bool creates) {
  for_each_group(rank_.shards, range.begin, range.end, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; creates && i < end; ++i) {
      moments({i, i + 1}, Moves::in);
      if (!masters_at_init_) masters({i, i + 1}, Moves::in);
      for (int k = 0; k < scale_tensors(precision_); ++k) trace_.allocate(trace_.keep(), Bytes{4});
    }
    scratch({begin, end});
  });
}

void StateTrace::scratch(Range range) {
  trace_.term(MemoryTerm::optimizer_scratch);
  std::vector<TraceTensor> tensors;
  for (int k = 0; k < scratch_tensors_; ++k)
    for (std::size_t i = range.begin; i < range.end; ++i) tensors.push_back(trace_.allocate(bytes(i, 4)));
  for (const TraceTensor tensor : tensors) trace_.release(tensor);
}

/// clone().float()
void StateTrace::make_masters(Range range) {
  if (rank_.job->precision.params == Dtype::fp32) return;
  for (std::size_t i = range.begin; i < range.end; ++i) {
    trace_.term(MemoryTerm::optimizer_scratch);
    const TraceTensor clone = trace_.allocate(bytes(i, size_of(precision_.params)));
    masters({i, i + 1}, Moves::in);
    trace_.release(clone);
  }
}

void StateTrace::init() {
  if (!masters_at_init_) return;
  switch (candidate_.policy) {
    case Policy::resident:
    case Policy::full_reload:
    case Policy::windowed:
      return make_masters(all());
    case Policy::chunked:  // built in host memory; the device tensor gives its storage back at once
      trace_.term(MemoryTerm::masters);
      for (std::size_t i = 0; i < rank_.shards.size(); ++i) trace_.pass(master_bytes(i));
      return;
    case Policy::cpu_adam:
      return make_masters({on_host_, rank_.shards.size()});
    case Policy::pipelined:
    case Policy::tidal:
      return;
  }
}

void StateTrace::begin_step(bool first) {
  const bool full_reload = candidate_.policy == Policy::full_reload;
  const bool here = !std::exchange(away_, false);
  if (full_reload && here && !first) state(all(), Moves::out);
  if (full_reload && here && first && masters_at_init_) masters(all(), Moves::out);
  if (candidate_.policy == Policy::windowed && here) masters_leave(first);
  if (candidate_.policy == Policy::tidal) tail(Moves::out);
}

void StateTrace::finalize(bool first) {
  const bool full_reload = candidate_.policy == Policy::full_reload;
  if (full_reload && !first) state(all(), Moves::in);
  if (full_reload && first && masters_at_init_) masters(all(), Moves::in);
  if (candidate_.policy == Policy::windowed) prefetch(first);
}

void StateTrace::step(bool first) {
  has_moments_ = true;
  switch (candidate_.policy) {
    case Policy::resident:
    case Policy::full_reload:
      adam(all(), first);
      return quantize_all();
    case Policy::chunked:
      return step_chunks(first);
    case Policy::windowed:
      step_windows(first);
      return quantize_all();
    case Policy::cpu_adam:
      return step_on_host(first);
    case Policy::pipelined:
      return step_in_slots(candidate_.slots, candidate_.chunk_numel);
    case Policy::tidal:
      return step_tidal();
  }
}

/// bf16 copies of the masters, largest values, scales (quantization.hpp).
void StateTrace::quantize(const QuantizeCall& call) {
  trace_.term(MemoryTerm::optimizer_scratch);
  std::vector<TraceTensor> tensors;
  for (const Part& run : call.runs)
    for (const Shard& shard : run.shards) tensors.push_back(trace_.allocate(bytes_of(shard.numel, 2)));
  for (const Bytes tensor : quantize_temporaries(precision_, *rank_.stage, call.parameters))
    tensors.push_back(trace_.allocate(tensor));
  for (const TraceTensor tensor : tensors) trace_.release(tensor);
}

void StateTrace::quantize_all() {
  for (const QuantizeCall& call : quantize_calls(rank_, std::nullopt, 0)) quantize(call);
}

/// The host waits for each chunk to leave before the next one comes. Quantised parameters have a second pass over
/// masters alone.
void StateTrace::step_chunks(bool first) {
  for (const Chunk& chunk : chunk_by_numel(rank_.shards, candidate_.chunk_numel)) {
    const Range range{chunk.first, std::size_t{chunk.first} + chunk.count};
    if (masters_at_init_) masters(range, Moves::in);
    if (!first && masters_at_init_) moments(range, Moves::in);
    if (!first && !masters_at_init_) state(range, Moves::in);
    adam(range, first);
    state(range, Moves::out);
  }
  for (const QuantizeCall& call : quantize_calls(rank_, candidate_.chunk_numel, 0)) {
    const auto for_each_run = [&](Moves moves) {
      for (const Part& run : call.runs) {
        const auto first_shard = static_cast<std::size_t>(run.shards.data() - rank_.shards.data());
        masters({first_shard, first_shard + run.shards.size()}, moves);
      }
    };
    for_each_run(Moves::in);
    quantize(call);
    for_each_run(Moves::out);
  }
}

/// Gradients leave as they are; parameters come back through one fp32 tensor a shard.
void StateTrace::step_on_host(bool first) {
  adam({on_host_, rank_.shards.size()}, first);
  trace_.term(MemoryTerm::optimizer_scratch);
  for (std::size_t i = 0; i < on_host_; ++i) trace_.pass(bytes(i, 4));
}

void StateTrace::step_in_slots(std::int64_t count, Numel numel) {
  const std::int64_t chunks = ceil_div(rank_.owned.value, numel.value);
  const Bytes slot = bytes_of(numel, precision_.state_bytes());
  std::vector<TraceTensor> slots(static_cast<std::size_t>(std::min(count, chunks)));
  trace_.term(MemoryTerm::moments);
  for (TraceTensor& tensor : slots) tensor = trace_.allocate(slot);
  for (const TraceTensor tensor : slots) trace_.release(tensor);
}

}  // namespace ebb
