// Roofline of a training step on pipeline rank p:
//
//   T = micro-batches x (matrix FLOPs / F + core FLOPs / F_bf16 + exchange bytes / B) x (1 + (PP - 1) / (mb VPP))
//
// F is the achieved GEMM rate (fp8 for the layers of an fp8 job) times compute_efficiency, the one calibrated number.
// Backward computes twice as much as forward and, with full recomputation, forward once more; selective recomputation
// adds what it names (the attention core, the MLP, the experts; norms and activations cost next to nothing). The last
// factor is the pipeline's bubble under (interleaved) one-forward-one-backward. Exchanges: tensor parallelism
// all-reduces (or gathers and scatters, which move the same) one hidden state twice a layer in each direction; experts
// exchange their tokens twice a layer in each direction. Left out, as they overlap or are small: pipeline sends,
// context-parallel rings, embeddings, norms, overlapped communication of gradients and parameters.
#include "planner/compute_model.hpp"

#include <algorithm>

#include "planner/layer_activations.hpp"

namespace ebb {

namespace {

/// What one rank computes for one micro-batch in forward.
struct StageWork {
  Flops matrices{0};  // at the layers' precision
  Flops core{0};      // attention core of the layers
  Flops output{0};    // bf16 even in fp8 jobs
  Flops again{0};     // matrices that selective recomputation runs a second time
  double dense_layers = 0;
  double moe_layers = 0;
};

void add_layers(const Job& job, bool moe, std::int64_t count, StageWork& work) {
  if (count == 0) return;
  const auto layers = static_cast<double>(count);
  const std::int64_t sequence = job.batch.sequence;
  const Flops feed_forward = feed_forward_flops(job.model, moe, sequence);
  work.matrices += (attention_matrix_flops(job.model, sequence) + feed_forward) * layers;
  work.core += attention_core_flops(job.model, sequence) * layers;
  if (recomputes(job.recompute, moe ? "moe" : "mlp")) work.again += feed_forward * layers;
  (moe ? work.moe_layers : work.dense_layers) += layers;
}

StageWork stage_work(const Job& job, std::int64_t pipeline_rank) {
  const ModelSpec& model = job.model;
  const std::int64_t sequence = job.batch.sequence;
  StageWork work;
  for (const ModelChunk& chunk : model_chunks(job, pipeline_rank)) {
    std::int64_t moe = 0;
    for (const std::int64_t layer : chunk.decoder_layers) moe += model.layer_is_moe(layer) ? 1 : 0;
    add_layers(job, false, static_cast<std::int64_t>(chunk.decoder_layers.size()) - moe, work);
    add_layers(job, true, moe, work);
    add_layers(job, model.layer_is_moe(model.layers - 1), chunk.mtp_layers, work);
    work.matrices += mtp_flops(model, sequence) * static_cast<double>(chunk.mtp_layers);
    if (chunk.output) work.output += output_flops(model, sequence) * static_cast<double>(1 + model.mtp_layers());
  }
  const double share =
      static_cast<double>(job.batch.micro) / static_cast<double>(job.parallel.tensor * job.parallel.context);
  for (Flops* part : {&work.matrices, &work.core, &work.output, &work.again}) *part = *part * share;
  return work;
}

/// Time to exchange `bytes` (what each rank sends) in a group of `ranks` consecutive GPUs.
double exchange_seconds(const Job& job, double bytes, std::int64_t ranks) {
  const Interconnect& link = job.cluster.interconnect;
  const bool near = ranks <= link.nvlink_domain;
  const double latency = (near ? link.nvlink_latency : link.network_latency).value.value;
  const double rate = (near ? link.nvlink : link.network).value.value;
  EBB_ASSERT(rate > 0);
  return bytes / rate + latency;
}

/// Exchanges of forward, for one micro-batch; backward has as many.
double exchanges(const Job& job, const StageWork& work) {
  const Parallel& parallel = job.parallel;
  const double rows = static_cast<double>(rank_tokens(job));
  const double hidden_bytes = 2.0 * rows * static_cast<double>(job.model.hidden);
  double seconds = 0;
  if (parallel.tensor > 1) {
    const auto ranks = static_cast<double>(parallel.tensor);
    const double one = exchange_seconds(job, hidden_bytes * 2 * (ranks - 1) / ranks, parallel.tensor);
    seconds += one * (2 * work.dense_layers + work.moe_layers);  // MoE: attention's only, its MLP exchanges below
  }
  const std::int64_t group = parallel.expert * parallel.expert_tensor;
  if (work.moe_layers > 0 && group > 1) {
    const MoeSpec& moe = *job.model.moe;
    const double width =
        static_cast<double>(moe.latent > 0 ? moe.latent : job.model.hidden) / static_cast<double>(job.model.hidden);
    const double routed = hidden_bytes * width * static_cast<double>(moe.top_k) / static_cast<double>(parallel.tensor);
    const double away = static_cast<double>(group - 1) / static_cast<double>(group);
    seconds += 2 * work.moe_layers * exchange_seconds(job, routed * away, group);
  }
  return seconds;
}

ComputeTime measured_time(const Job& job) {
  const double backward = job.recompute.granularity == RecomputeGranularity::full ? 3 : 2;
  const double total = job.compute.step_seconds->value;
  return {{total / (1 + backward)}, {total * backward / (1 + backward)}, true};
}

}  // namespace

ComputeTime compute_time(const Job& job, std::int64_t pipeline_rank) {
  if (job.compute.step_seconds) return measured_time(job);
  const Gpu& gpu = job.cluster.gpu;
  const double bf16 = gpu.matrix_bf16.value.value * gpu.compute_efficiency.value;
  EBB_ASSERT(bf16 > 0);
  // A GPU without fp8 units states no fp8 rate; the job is refused elsewhere, here it runs at the bf16 rate.
  const double fp8 = std::max(bf16, gpu.matrix_fp8.value.value * gpu.compute_efficiency.value);
  const double layers_rate = job.precision.fp8 == Fp8Recipe::none ? bf16 : fp8;

  const StageWork work = stage_work(job, pipeline_rank);
  const double core = work.core.value / bf16;
  const double compute = work.matrices.value / layers_rate + core;
  const double exchange = exchanges(job, work);
  const double output = work.output.value / bf16;
  double again = work.again.value / layers_rate;
  if (recomputes(job.recompute, "core_attn")) again += core;
  if (job.recompute.granularity == RecomputeGranularity::full) again = compute + exchange;

  const double micro_batches = static_cast<double>(std::max<std::int64_t>(job.micro_batches(), 1));
  const double bubble = static_cast<double>(job.parallel.pipeline - 1) /
                        (micro_batches * static_cast<double>(job.parallel.virtual_pipeline));
  const double repeats = micro_batches * (1 + bubble);
  return {{repeats * (compute + exchange + output)}, {repeats * (2 * (compute + output) + exchange + again)}, false};
}

}  // namespace ebb
