#include "planner/layer_activations.hpp"

#include <algorithm>

#include "planner/layer_tape.hpp"

namespace ebb {

bool recomputes(const Recompute& recompute, std::string_view module) {
  if (recompute.granularity != RecomputeGranularity::selective) return false;
  const auto& modules = recompute.modules;
  if (modules.empty()) return module == "core_attn";
  return std::find(modules.begin(), modules.end(), module) != modules.end();
}

std::int64_t rank_tokens(const Job& job) { return job.batch.micro * job.batch.sequence / job.parallel.context; }

Bytes hidden_state_bytes(const Job& job) {
  const std::int64_t rows = job.parallel.sequence ? rank_tokens(job) / job.parallel.tensor : rank_tokens(job);
  return {size_of(job.precision.params) * rows * job.model.hidden};
}

SavedActivations saved_activations_per_layer(const Job& job, bool moe) {
  const LayerTape tape = layer_tape(job, moe);
  std::vector<LayerTape::Op> alive = live_after(tape.forward, tape.slots);
  alive[LayerTape::kOutput] = {};  // the next layer's
  SavedActivations saved{.residual = hidden_state_bytes(job)};
  for (const LayerTape::Op& op : alive) {
    if (op.term == MemoryTerm::hidden_states) saved.residual += op.bytes;
    if (op.term == MemoryTerm::attention) saved.attention += op.bytes;
    if (op.term == MemoryTerm::feed_forward) saved.feed_forward += op.bytes;
    if (op.term == MemoryTerm::experts) saved.experts += op.bytes;
  }
  return saved;
}

}  // namespace ebb
