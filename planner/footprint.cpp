// The bytes a rank holds between steps besides optimizer state, and what a step adds. Sources: Megatron-LM
// core/distributed/param_and_grad_buffer.py (buffers are allocated padded) and Transformer Engine's tensor classes
// for fp8; the workspace constants are measured and stand beside their numbers.
#include "planner/footprint.hpp"

#include <algorithm>

#include "planner/activations.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/weight_bytes.hpp"

namespace ebb {

namespace {

/// Transformer Engine: three 32 MiB matrix-library workspaces and small tensors. Megatron-LM's recorded dense
/// single-stage cases leave 73.8, 96.0, 97.0, 98.8 and 99.1 MiB beside parameters, gradients and state.
constexpr Bytes kTransformerEngineWorkspaces{(97 << 20) + (1 << 19)};
/// Grouped GEMMs of experts: five more workspaces of 32 MiB, one a stream (recorded: 257 MiB in all for eight experts).
constexpr Bytes kGroupedGemmWorkspaces = 160_MiB;
/// Local implementation: two 32 MiB workspaces and 1 MiB of small tensors; exact on two measured jobs (H200, 2026-11).
constexpr Bytes kLocalWorkspaces = 65_MiB;

void add_parameters(const Job& job, const StageLayout& stage, std::vector<Term>& terms) {
  Bytes buffers{0};
  for (const BufferLayout& buffer : stage.buffers) buffers += parameter_buffer_bytes(job, buffer);
  terms.push_back({"parameters", buffers});
  // Column-wise copies that come and go (weight_bytes.hpp) count throughout: what a step needs at its peak.
  const WeightCopies copies = weight_copies(job, stage);
  if (!copies.always.empty()) terms.push_back({"fp8 weight copies", copies.always_bytes()});
  if (!copies.columns.empty()) terms.push_back({"fp8 column-wise copies", copies.columns_bytes()});
}

void add_workspaces(const Job& job, std::vector<Term>& terms) {
  if (job.compute.attention == Attention::local) {
    const std::int64_t s = job.batch.sequence;
    const std::int64_t heads = job.model.heads / job.parallel.tensor;
    terms.push_back({"workspaces", kLocalWorkspaces});
    terms.push_back({"attention score buffer", Bytes{job.batch.micro * heads * s * s * 2}});
    return;
  }
  terms.push_back({"workspaces", kTransformerEngineWorkspaces});
  if (job.model.moe) terms.push_back({"grouped matrix workspaces", kGroupedGemmWorkspaces});
}

/// Hidden states that the pipeline schedule's lists keep for each virtual stage after the step, until Python collects
/// its reference cycles. Recorded on last stages: 2.1-2.7 hidden states at VPP 1, 3.8 at 2, 5.6-6.7 at 3, 20 at 8.
Bytes pipeline_leftovers(const Job& job, std::int64_t virtual_stages) {
  return {5 * virtual_stages * hidden_state_bytes(job).value / 2};
}

/// Where Megatron holds the masters, a step makes an fp32 copy of the owned part of bf16 gradients; Transformer
/// Engine's optimizer, where it does, reads them as they are. Source: Megatron-LM
/// core/optimizer/distrib_optimizer.py:2756.
Bytes gradient_copies(const Job& job, Numel owned) {
  const Precision& precision = job.precision;
  return copies_gradients(precision) ? bytes_of(owned, 4) : Bytes{0};
}

}  // namespace

Footprint footprint_of(const Job& job, const StageLayout& stage, Numel owned) {
  Footprint footprint;
  add_parameters(job, stage, footprint.resident);
  Numel padded{0};
  for (const BufferLayout& buffer : stage.buffers) padded += buffer.numel;
  footprint.resident.push_back({"gradients", bytes_of(padded, size_of(job.precision.grads))});
  add_workspaces(job, footprint.resident);
  footprint.activations = saved_activations(job, stage);
  if (job.parallel.pipeline > 1) {
    const std::int64_t virtual_stages = job.parallel.virtual_pipeline;
    footprint.resident.push_back({"pipeline hidden states", pipeline_leftovers(job, virtual_stages)});
    // At the peak of the next step one virtual stage's share is alive beside the activations, the rest is gone.
    const Bytes gone = pipeline_leftovers(job, virtual_stages - 1);
    footprint.activations = std::max(footprint.activations - gone, Bytes{0});
  }
  footprint.logits = turn_temporaries(job, stage);
  footprint.step_temporaries = gradient_copies(job, owned);
  return footprint;
}

}  // namespace ebb
