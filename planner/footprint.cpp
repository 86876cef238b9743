// The bytes a rank holds between steps besides optimizer state, and what a step adds. Sources: Megatron-LM
// core/distributed/param_and_grad_buffer.py (buffers are allocated padded) and Transformer Engine's tensor classes
// for fp8; the workspace constants are measured and stand beside their numbers.
#include "planner/footprint.hpp"

#include <algorithm>

#include "models/memory/torch_allocator.hpp"
#include "planner/activations.hpp"
#include "planner/layer_activations.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/weight_bytes.hpp"
#include "planner/workspaces.hpp"

namespace ebb {

namespace {

/// A byte for every padded element: MXFP8's column-wise copies are gathered like the rows, so they lie like them.
Bytes quantized_elements(const StageLayout& stage) {
  Bytes bytes{0};
  for (const BufferLayout& buffer : stage.buffers)
    if (buffer.quantized) bytes += bytes_of(buffer.numel, 1);
  return bytes;
}

void add_parameters(const Job& job, const StageLayout& stage, Footprint& footprint) {
  std::vector<Term>& terms = footprint.resident;
  Bytes buffers{0};
  for (const BufferLayout& buffer : stage.buffers) {
    if (buffer.holds_parameters) buffers += parameter_buffer_bytes(job, buffer);
    if (buffer.holds_parameters) continue;
    for (const ParameterRange& range : buffer.ranges)  // parameters stay tensors of their own
      buffers += memory::allocated_bytes(bytes_of(range.end - range.start, size_of(job.precision.params)));
  }
  terms.push_back({"parameters", buffers, Role::params});
  const WeightCopies copies = weight_copies(job, stage);
  const auto add = [&](const char* name, Bytes bytes, Role role) {
    if (bytes.value > 0) terms.push_back({name, bytes, role});
  };
  add("fp8 weight copies", copies.always_bytes() - copies.scales - copies.kept_columns, Role::other);
  add("fp8 scales", copies.scales, Role::scales);
  Bytes columns = copies.kept_columns;
  if (columns.value > 0 && job.precision.fp8 == Fp8Recipe::mxfp8) columns = quantized_elements(stage);
  add("fp8 columns", columns, Role::columns);
  if (copies.columns.empty()) return;
  if (eager_columnwise(job))
    add("fp8 columns", copies.columns_bytes(), Role::columns);
  else
    footprint.lazy_columns = copies.columns_bytes();
}

void add_workspaces(const Job& job, std::vector<Term>& terms) {
  terms.push_back({"workspaces", matrix_workspaces(job)});
  if (const Bytes grouped = grouped_matrix_workspaces(job); grouped.value > 0)
    terms.push_back({"grouped matrix workspaces", grouped});
  if (job.model.positions == Positions::rope)
    terms.push_back({"rotary table", Bytes{4 * job.batch.sequence * job.model.head_dim}});
}

/// Where Megatron holds the masters, a step makes an fp32 copy of the owned part of bf16 gradients; Transformer
/// Engine's optimizer, where it does, reads them as they are. Source: Megatron-LM
/// core/optimizer/distrib_optimizer.py:2756.
Bytes gradient_copies(const Job& job, Numel owned) {
  const Precision& precision = job.precision;
  return copies_gradients(precision) ? bytes_of(owned, 4) : Bytes{0};
}

}  // namespace

std::int64_t stages_with_input(const StageLayout& stage) {
  return std::count_if(stage.chunks.begin(), stage.chunks.end(),
                       [](const ModelChunk& chunk) { return !chunk.embedding; });
}

Footprint footprint_of(const Job& job, const StageLayout& stage, Numel owned) {
  Footprint footprint;
  add_parameters(job, stage, footprint);
  Numel padded{0};
  for (const BufferLayout& buffer : stage.buffers) padded += buffer.numel;
  footprint.resident.push_back({"gradients", bytes_of(padded, size_of(job.precision.grads)), Role::grads});
  footprint.built = footprint.resident_total();
  add_workspaces(job, footprint.resident);
  const StageActivations alive = stage_activations(job, stage);
  if (alive.shared_buffer.value > 0) footprint.resident.push_back({"gather and score buffer", alive.shared_buffer});
  if (alive.gradient_stand_ins.value > 0)
    footprint.resident.push_back({"gradient stand-ins", alive.gradient_stand_ins});
  if (const Bytes more = job.measured.resident_remainder; more.value > 0)
    footprint.resident.push_back({"measured remainder", more});
  footprint.activations = alive.saved;
  if (const std::int64_t stages = stages_with_input(stage); stages > 0) {
    const Bytes of_one = kLeftByStage * hidden_state_bytes(job);
    footprint.resident.push_back({"pipeline hidden states", stages * of_one});
    // At the peak of the next step one virtual stage's share is alive beside the activations, the rest is gone.
    footprint.activations = std::max(footprint.activations - (stages - 1) * of_one, Bytes{0});
  }
  footprint.activations += job.measured.peak_remainder;
  footprint.logits = alive.turn;
  footprint.step_temporaries = gradient_copies(job, owned);
  return footprint;
}

}  // namespace ebb
