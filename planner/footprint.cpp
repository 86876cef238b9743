// The bytes a rank holds between steps besides optimizer state, and what a step adds. Sources: Megatron-LM
// core/distributed/param_and_grad_buffer.py (buffers are allocated padded) and Transformer Engine's tensor classes
// for fp8; the workspace constants are measured and stand beside their numbers.
#include "planner/footprint.hpp"

#include <algorithm>

#include "planner/activations.hpp"
#include "planner/workspaces.hpp"
#include "sim/torch_allocator.hpp"

namespace ebb {

namespace {

/// Only data-centre Blackwell multiplies fp8 matrices of any layout; other GPUs keep a transposed copy of each weight
/// (Transformer Engine, is_non_tn_fp8_gemm_supported).
bool needs_transposed_weights(const Job& job) {
  const std::string& gpu = job.cluster.gpu.name;
  return gpu.find("B200") == std::string::npos && gpu.find("B300") == std::string::npos;
}

/// Bytes of `n` fp8 weights outside the parameter buffer. `rowwise`: including the untransposed data.
Bytes fp8_weight_bytes(const Job& job, Numel n, bool rowwise) {
  const std::int64_t copies = rowwise ? 1 : 0;
  switch (job.precision.fp8) {
    case Fp8Recipe::none:
      return {0};
    case Fp8Recipe::delayed:
    case Fp8Recipe::tensorwise:
      return bytes_of(n, copies + (needs_transposed_weights(job) ? 1 : 0));
    case Fp8Recipe::blockwise:  // both layouts, one fp32 scale for each 128 x 128 block of each
      return bytes_of(n, copies + 1) + 8 * Bytes{ceil_div(n.value, std::int64_t{128} * 128)};
    case Fp8Recipe::mxfp8:  // both layouts, one byte of scale for each 32 elements of each
      return bytes_of(n, 2) + Bytes{2 * ceil_div(n.value, 32)};
  }
  return {0};
}

void add_parameters(const Job& job, const StageLayout& stage, std::vector<Term>& terms) {
  Bytes plain{0};
  Bytes fp8_buffer{0};
  Numel quantized{0};
  for (const BufferLayout& buffer : stage.buffers) {
    if (!buffer.holds_parameters) {
      for (const ParameterRange& range : buffer.ranges)
        plain += sim::allocated_bytes(bytes_of(range.end - range.start, size_of(job.precision.params)));
    } else if (!buffer.quantized)
      plain += bytes_of(buffer.numel, size_of(job.precision.params));
    // An mxfp8 gather runs through the gradient buffer, so there is no parameter buffer.
    else if (job.precision.fp8 != Fp8Recipe::mxfp8)
      fp8_buffer += bytes_of(buffer.numel, 1);
    if (buffer.quantized) quantized += buffer.unpadded;
  }
  terms.push_back({"parameters", plain + fp8_buffer});
  if (job.precision.fp8 == Fp8Recipe::none) return;
  if (job.precision.fp8_param_gather) {
    terms.push_back({"fp8 weight copies", fp8_weight_bytes(job, quantized, job.precision.fp8 == Fp8Recipe::mxfp8)});
    return;
  }
  // Without the gather Transformer Engine keeps quantised copies of all linear weights beside the bf16 ones.
  Numel linear{0};
  for (const Parameter& parameter : stage.parameters)
    if (parameter.columns > 0 && !parameter.embedding_or_output && parameter.name.find("router") == std::string::npos)
      linear += parameter.numel();
  terms.push_back({"fp8 weight copies", fp8_weight_bytes(job, linear, true)});
}

void add_workspaces(const Job& job, std::vector<Term>& terms) {
  const std::int64_t s = job.batch.sequence;
  terms.push_back({"workspaces", matrix_workspaces(job)});
  if (job.model.moe && job.experts.grouped_matmul && job.compute.attention != Attention::local)
    terms.push_back({"grouped matrix workspaces", grouped_matrix_workspaces(job)});
  if (job.compute.attention == Attention::local) {
    const std::int64_t heads = job.model.heads / job.parallel.tensor;
    terms.push_back({"attention score buffer", Bytes{job.batch.micro * heads * s * s * 2}});
  }
  if (job.model.positions == Positions::rope) terms.push_back({"rotary table", Bytes{4 * s * job.model.head_dim}});
}

/// The standard optimizer makes an fp32 copy of the owned part of bf16 gradients; a precision-aware one reads them
/// as they are. Source: Megatron-LM core/optimizer/distrib_optimizer.py:2756.
Bytes gradient_copies(const Job& job, Numel owned) {
  const Precision& precision = job.precision;
  const bool standard =
      precision.exp_avg == Dtype::fp32 && precision.exp_avg_sq == Dtype::fp32 && precision.master == Dtype::fp32;
  return standard && precision.grads != Dtype::fp32 ? bytes_of(owned, 4) : Bytes{0};
}

}  // namespace

std::int64_t stages_with_input(const StageLayout& stage) {
  return std::count_if(stage.chunks.begin(), stage.chunks.end(),
                       [](const ModelChunk& chunk) { return !chunk.embedding; });
}

Footprint footprint_of(const Job& job, const StageLayout& stage, Numel owned) {
  Footprint footprint;
  add_parameters(job, stage, footprint.resident);
  Numel padded{0};
  for (const BufferLayout& buffer : stage.buffers) padded += buffer.numel;
  footprint.resident.push_back({"gradients", bytes_of(padded, size_of(job.precision.grads))});
  add_workspaces(job, footprint.resident);
  footprint.activations = saved_activations(job, stage);
  if (const std::int64_t stages = stages_with_input(stage); stages > 0) {
    const Bytes of_one = kLeftByStage * hidden_state_bytes(job);
    footprint.resident.push_back({"pipeline hidden states", stages * of_one});
    // At the peak of the next step one virtual stage's share is alive beside the activations, the rest is gone.
    footprint.activations = std::max(footprint.activations - (stages - 1) * of_one, Bytes{0});
  }
  footprint.logits = turn_temporaries(job, stage);
  footprint.step_temporaries = gradient_copies(job, owned);
  return footprint;
}

}  // namespace ebb
