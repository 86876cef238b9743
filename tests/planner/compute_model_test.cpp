// FLOPs against hand sums and published rules of thumb; the roofline against recorded iteration times.
#include "planner/compute_model.hpp"

#include <algorithm>

#include "tests/catch.hpp"
#include "tests/planner/recorded.hpp"

using namespace ebb;
using namespace ebb::tests;

namespace {

/// H100 SXM: three quarters of the datasheet's 989 TFLOP/s in large GEMMs; 360 GB/s in NVLink collectives.
Cluster h100() {
  Cluster cluster;
  cluster.name = "h100";
  cluster.gpu.name = "H100";
  cluster.gpu.matrix_bf16.value = {0.75 * 989e12};
  cluster.gpu.matrix_fp8.value = {0.75 * 1979e12};
  cluster.gpu.compute_efficiency.value = 0.55;
  cluster.interconnect.nvlink.value = {360e9};
  cluster.interconnect.nvlink_latency.value = {3e-6};
  cluster.interconnect.network.value = {45e9};
  cluster.interconnect.network_latency.value = {10e-6};
  return cluster;
}

double seconds(const Job& job, std::int64_t rank) {
  const ComputeTime time = compute_time(job, rank);
  return time.forward.value + time.backward.value;
}

ModelSpec llama3_8b() {
  ModelSpec model;
  model.layers = 32;
  model.hidden = 4096;
  model.ffn = 14336;
  model.heads = 32;
  model.kv_heads = 8;
  model.head_dim = 128;
  model.vocab = 128256;
  return model;
}

ModelSpec deepseek_v3() {
  ModelSpec model;
  model.layers = 61;
  model.hidden = 7168;
  model.ffn = 18432;
  model.heads = model.kv_heads = model.head_dim = 128;
  model.vocab = 129280;
  model.mla = MlaSpec{.q_lora_rank = 1536, .kv_lora_rank = 512};
  model.moe = MoeSpec{.experts = 256, .top_k = 8, .ffn = 2048, .shared_ffn = 2048, .first_dense_layers = 3};
  return model;
}

}  // namespace

TEST_CASE("FLOPs of a grouped-query model, by hand") {
  // Llama-3-8B, one token of 8192: 6 x (32 x (41,943,040 + 176,160,768) + 525,336,576) and 6 x 32 x 4096 x 8192.
  const double token = 6.0 * (32.0 * (41'943'040 + 176'160'768) + 525'336'576) + 6.0 * 32 * 4096 * 8192;
  CHECK(model_flops_per_sequence(llama3_8b(), 8192).value == Approx(8192 * token).epsilon(1e-12));
}

TEST_CASE("FLOPs agree with 6 N tokens where attention is short") {
  // N without the input embedding: 8,030,261,248 - 525,336,576 parameters (published total, untied).
  const double rule = 6.0 * (8'030'261'248.0 - 525'336'576.0) * 128;
  const double flops = model_flops_per_sequence(llama3_8b(), 128).value;
  CHECK(flops > rule);
  CHECK(flops < 1.005 * rule);
}

TEST_CASE("FLOPs of latent attention and experts agree with the published number of active parameters") {
  // DeepSeek-V3: 37 B activated parameters, of which 0.93 B are the input embedding, at a token of a short sequence.
  const double flops = model_flops_per_sequence(deepseek_v3(), 128).value / 128;
  CHECK(flops == Approx(6 * 36.1e9).epsilon(0.03));
}

TEST_CASE("a prediction layer adds a layer, its projection and another output layer") {
  ModelSpec model = deepseek_v3();
  const double without = model_flops_per_sequence(model, 4096).value;
  model.mtp = MtpSpec{.layers = 1};
  const double h = 7168;
  const double attention = 1536 * (h + 128 * 192 + 1) + 512 * (h + 128 * 256 + 1) + h * 64 + 128.0 * 128 * h;
  const double experts = 3 * h * (2048 * 8 + 2048);
  const double token = 6 * (attention + experts + 3 * h + 2 * h * h + h * 129280) + 3 * 4096.0 * 128 * (192 + 128);
  CHECK(model_flops_per_sequence(model, 4096).value - without == Approx(4096 * token).epsilon(1e-9));
}

TEST_CASE("latent experts work on the latent size, plus the way there and back") {
  ModelSpec model = llama3_8b();
  model.moe = MoeSpec{.experts = 8, .top_k = 2, .ffn = 1024, .latent = 512};
  const double per_token = 2.0 * (512.0 * 1024 * 2 * 3 + 2 * 4096.0 * 512);
  CHECK(feed_forward_flops(model, true, 10).value == Approx(10 * per_token));
}

TEST_CASE("recorded 7 B and Mixtral runs: the roofline meets the iteration time within 10 percent at one efficiency") {
  std::vector<RecordedCase> cases = recorded_dense_cases();
  for (const RecordedCase& recorded : recorded_moe_cases()) cases.push_back(recorded);
  int compared = 0;
  for (const RecordedCase& recorded : cases) {
    if (recorded.iteration_s == 0) continue;  // launch-bound toys
    Job job = recorded.job;
    job.cluster = h100();
    double slowest = 0;
    for (std::int64_t rank = 0; rank < job.parallel.pipeline; ++rank) slowest = std::max(slowest, seconds(job, rank));
    INFO(recorded.id << ": " << slowest << " s predicted, " << recorded.iteration_s << " recorded");
    CHECK(slowest == Approx(recorded.iteration_s).epsilon(0.10));
    ++compared;
  }
  CHECK(compared == 4);
}

TEST_CASE("a measured time is kept whole, split 1:2, or 1:3 with full recomputation") {
  Job job = small_gpt(1, 1);
  job.compute.step_seconds = Seconds{3.0};
  CHECK(compute_time(job, 0).measured);
  CHECK(compute_time(job, 0).forward.value == Approx(1.0));
  CHECK(compute_time(job, 0).backward.value == Approx(2.0));
  job.recompute.granularity = RecomputeGranularity::full;
  CHECK(compute_time(job, 0).forward.value == Approx(0.75));
  CHECK(compute_time(job, 0).backward.value == Approx(2.25));
}

TEST_CASE("pipeline bubble: (PP - 1) / (micro-batches x VPP) on top") {
  Job job = gpt_7b(1, 4, 1, 1);
  job.cluster = h100();
  job.batch.global = 64;  // 32 micro-batches on each of 2 data-parallel ranks
  const double one = seconds(job, 1) / (32 + 3);
  job.batch.global = 128;
  CHECK(seconds(job, 1) == Approx(one * (64 + 3)));
  job.parallel.virtual_pipeline = 8;
  CHECK(seconds(job, 1) == Approx(one * (64 + 3.0 / 8)));
  CHECK(seconds(job, 3) > seconds(job, 1));  // the output layer
}

TEST_CASE("recomputation costs forward once more, or what it names") {
  Job job = gpt_7b(4, 1, 1, 2);
  job.cluster = h100();
  const ComputeTime plain = compute_time(job, 0);
  job.recompute.granularity = RecomputeGranularity::selective;
  const ComputeTime core = compute_time(job, 0);
  job.recompute.modules = {"mlp"};
  const ComputeTime mlp = compute_time(job, 0);
  job.recompute.granularity = RecomputeGranularity::full;
  const ComputeTime full = compute_time(job, 0);
  CHECK(plain.backward < core.backward);
  CHECK(core.backward < mlp.backward);
  CHECK(mlp.backward < full.backward);
  CHECK(full.forward == plain.forward);
  CHECK(full.backward < plain.backward + plain.forward);  // the output layer is not run again
}

TEST_CASE("fp8 speeds up the layers only, and a GPU without it runs at the bf16 rate") {
  Job job = gpt_7b(4, 1, 1, 2);
  job.cluster = h100();
  const double bf16 = seconds(job, 0);
  job.precision.fp8 = Fp8Recipe::tensorwise;
  const double fp8 = seconds(job, 0);
  CHECK(fp8 < bf16);
  CHECK(fp8 > bf16 / 2);
  job.cluster.gpu.matrix_fp8.value = {0};
  CHECK(seconds(job, 0) == Approx(bf16));
}

TEST_CASE("expert exchange over the network costs more than over NVLink") {
  Job job = gpt_7b(1, 1, 1, 1);
  job.model.moe = MoeSpec{.experts = 64, .top_k = 8, .ffn = 2048};
  job.parallel.gpus = 64;
  job.batch.global = 64;
  job.cluster = h100();
  const double alone = seconds(job, 0);
  job.parallel.expert = 8;
  const double near = seconds(job, 0);
  job.parallel.expert = 16;
  const double far = seconds(job, 0);
  CHECK(alone < near);
  // 32 layers x 2 x 2 exchanges of 8192 x 8 x 4096 x 2 bytes, the part that leaves the GPU.
  CHECK(near - alone == Approx(128 * (536'870'912.0 * 7 / 8 / 360e9 + 3e-6)));
  CHECK(far - alone == Approx(128 * (536'870'912.0 * 15 / 16 / 45e9 + 10e-6)));
}
