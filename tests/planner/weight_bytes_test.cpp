// Bytes of FP8 and FP4 weights: counted by hand from the shapes of Transformer Engine's tensor classes, and against
// what Megatron-LM's recorded runs had allocated.
#include "planner/weight_bytes.hpp"

#include "models/memory/torch_allocator.hpp"
#include "planner/footprint.hpp"
#include "planner/fp8_load.hpp"
#include "tests/catch.hpp"
#include "tests/planner/lowering_cases.hpp"
#include "tests/planner/recorded.hpp"

using namespace ebb;

namespace {

Job job_with(Fp8Recipe recipe, const char* gpu = "H100-SXM-80GB") {
  Job job;
  job.cluster.gpu.name = gpu;
  job.precision.fp8 = recipe;
  job.precision.fp8_param_gather = true;
  return job;
}

Parameter linear(std::int64_t rows, std::int64_t columns) {
  Parameter p;
  p.rows = rows, p.columns = columns;
  p.low_precision = p.quantized = true;
  return p;
}

/// A stage of gathered weights in one unpadded buffer.
StageLayout stage_of(std::vector<Parameter> parameters) {
  StageLayout stage;
  stage.parameters = std::move(parameters);
  BufferLayout& buffer = stage.buffers.emplace_back();
  buffer.quantized = true;
  std::int64_t end = 0;
  for (std::uint32_t i = 0; i < stage.parameters.size(); ++i) {
    const std::int64_t numel = stage.parameters[i].numel().value;
    buffer.ranges.push_back({.parameter = i, .bucket = 0, .start = {end}, .end = {end + numel}});
    end += numel;
  }
  buffer.numel = buffer.unpadded = {end};
  return stage;
}

Bytes term(const Footprint& footprint, const std::string& name) {
  Bytes sum{0};
  for (const Term& t : footprint.resident)
    if (t.name == name) sum += t.bytes;
  return sum;
}

}  // namespace

// Llama-3-8B's second MLP matrix, all sizes multiples of the blocks.
TEST_CASE("scales of a [4096, 14336] weight, by hand") {
  const Parameter p = linear(4096, 14336);
  const std::int64_t numel = 58'720'256;
  const WeightBytes block = weight_bytes(job_with(Fp8Recipe::blockwise), p);
  CHECK(block.row == Bytes{numel});
  CHECK(block.column == Bytes{numel});
  CHECK(block.row_scales == Bytes{32 * 112 * 4});
  CHECK(block.column_scales == Bytes{112 * 32 * 4});
  CHECK(block.row_in_buffer);
  const WeightBytes mx = weight_bytes(job_with(Fp8Recipe::mxfp8), p);
  CHECK(mx.row_scales == Bytes{4096 * 448});
  CHECK(mx.column_scales == Bytes{128 * 14336});
  CHECK(mx.row.value + mx.row_scales.value + mx.column.value + mx.column_scales.value == numel * 33 / 16);  // 2.0625
  CHECK_FALSE(mx.row_in_buffer);
}

// DeepSeek-V3's latent down projection: 576 rows are four and a half blocks of 128, 18 blocks of 32, 36 of 16.
TEST_CASE("scales of a [576, 7168] weight are padded, by hand") {
  const Parameter p = linear(576, 7168);
  const WeightBytes block = weight_bytes(job_with(Fp8Recipe::blockwise), p);
  CHECK(block.row_scales == Bytes{5 * 56 * 4});
  CHECK(block.column_scales == Bytes{56 * 8 * 4});
  const WeightBytes mx = weight_bytes(job_with(Fp8Recipe::mxfp8), p);
  CHECK(mx.row_scales == Bytes{640 * 224});
  CHECK(mx.column_scales == Bytes{20 * 7168});
  Job job = job_with(Fp8Recipe::none);
  job.precision.fp4 = Fp4Recipe::nvfp4;
  job.precision.fp4_param_gather = true;
  const WeightBytes four = weight_bytes(job, p);
  CHECK(four.row == Bytes{576 * 7168 / 2});
  CHECK(four.column == Bytes{576 * 7168 / 2});
  CHECK(four.row_scales == Bytes{640 * 448});
  CHECK(four.column_scales == Bytes{7168 * 36});
  CHECK(four.scalars == 2);
}

TEST_CASE("per-tensor scaling: a transpose on Hopper, none on Blackwell, three numbers of 512 bytes each") {
  const StageLayout stage = stage_of({linear(1024, 1024)});
  CHECK(weight_copies(job_with(Fp8Recipe::tensorwise), stage).always_bytes() == Bytes{(1 << 20) + 3 * 512});
  CHECK(weight_copies(job_with(Fp8Recipe::delayed), stage).always_bytes() == Bytes{(1 << 20) + 3 * 512});
  CHECK(weight_copies(job_with(Fp8Recipe::tensorwise, "B200"), stage).always_bytes() == Bytes{3 * 512});
}

TEST_CASE("the parameter buffer: a byte an element, none for mxfp8, packed halves for nvfp4") {
  StageLayout stage = stage_of({linear(64, 65), linear(32, 33)});
  BufferLayout& buffer = stage.buffers[0];
  buffer.shards = 3;
  buffer.numel = {6144};
  CHECK(parameter_buffer_bytes(job_with(Fp8Recipe::blockwise), buffer) == Bytes{6144});
  CHECK(parameter_buffer_bytes(job_with(Fp8Recipe::mxfp8), buffer) == Bytes{0});
  CHECK(gathered_bytes(job_with(Fp8Recipe::mxfp8), buffer, {6144}) == Bytes{2 * 6144});
  Job job = job_with(Fp8Recipe::none);
  job.precision.fp4 = Fp4Recipe::nvfp4;
  job.precision.fp4_param_gather = true;
  // 2,080 bytes, at a multiple of 64 (2,112) 528 more: 2,640, in a multiple of lcm(3, 128) = 384.
  CHECK(parameter_buffer_bytes(job, buffer) == Bytes{2688});
  CHECK(gathered_bytes(job, buffer, {6144}) == Bytes{3072});
  buffer.ranges[1].bucket = 1;  // 2,304 closes the first bucket, 2,832 more are in a multiple of 384
  CHECK(parameter_buffer_bytes(job, buffer) == Bytes{3072});
}

// Pull request 6544: lazy without CUDA graphs. Per-tensor transposes keep their storage either way.
TEST_CASE("column-wise copies stay through a save where they are made at once, and go where they are made lazily") {
  const StageLayout stage = stage_of({linear(1024, 1024)});
  const std::int64_t scales = 1024;  // 8 x 8 blocks of 4 bytes are 256 bytes, 512 as allocated, twice
  Job job = job_with(Fp8Recipe::blockwise);
  CHECK(weight_copies_between_steps(job, stage) == Bytes{512});
  job.megatron.cuda_graphs = CudaGraphs::local;
  CHECK(weight_copies_between_steps(job, stage) == Bytes{(1 << 20) + scales});
  job.precision.fp8_columnwise = Columnwise::lazy;
  CHECK(weight_copies_between_steps(job, stage) == Bytes{512});
  job.megatron.cuda_graphs = CudaGraphs::none;
  job.precision.fp8_columnwise = Columnwise::eager;  // Megatron-LM main and dev
  CHECK(weight_copies_between_steps(job, stage) == Bytes{(1 << 20) + scales});
  job = job_with(Fp8Recipe::tensorwise);
  CHECK(weight_copies_between_steps(job, stage) == Bytes{(1 << 20) + 3 * 512});
  job = job_with(Fp8Recipe::mxfp8);
  CHECK(weight_copies_between_steps(job, stage) == Bytes{2 * ((1 << 20) + (1 << 15))});
}

TEST_CASE("without the gather Transformer Engine keeps both copies of linear weights, and the bf16 ones stay") {
  Parameter weight = linear(60, 10);
  weight.quantized = false;
  Parameter router = weight;
  router.low_precision = false;
  StageLayout stage = stage_of({weight, router});
  stage.buffers[0].quantized = false;
  Job job = job_with(Fp8Recipe::blockwise);
  job.precision.fp8_param_gather = false;
  // Two copies of 600 bytes in 1,024, two tensors of scales in 512.
  CHECK(weight_copies_between_steps(job, stage) == Bytes{2 * 1024 + 2 * 512});
  CHECK(parameter_buffer_bytes(job, stage.buffers[0]) == Bytes{2 * 1200});
}

TEST_CASE("first and last layers in bf16 have neither FP8 weights nor copies, prediction layers have") {
  Job job = load_job("deepseek-v3-2048xh200");
  job.precision.first_bf16_layers = 1;
  job.precision.last_bf16_layers = 2;
  ModelChunk chunk;
  chunk.decoder_layers = {0, 1, job.model.layers - 2, job.model.layers - 1};
  chunk.mtp_layers = 1;
  std::size_t bf16 = 0;
  for (const Parameter& p : chunk_parameters(job, chunk)) {
    const bool kept = p.name.starts_with("decoder.layers.0.") || p.name.starts_with("decoder.layers.59.") ||
                      p.name.starts_with("decoder.layers.60.");
    if (p.name.ends_with("linear_proj.weight")) CHECK(p.quantized == !kept);
    if (kept) CHECK_FALSE(p.low_precision);
    bf16 += kept ? 1 : 0;
  }
  CHECK(bf16 > 30);
}

// Megatron-LM functional tests, golden_values_dev_dgx_h100.json: gpt3_weekly_mcore_tp4_cp2_current_scaling_native_fp8.
TEST_CASE("a recorded run with FP8 weights (tensorwise): allocated between steps within 8 MiB") {
  Job job = tests::small_gpt(4, 1, 1, 2);
  job.cluster = load_job("llama3-8b-hgx-h200").cluster;
  job.model.norm = Norm::rmsnorm;
  job.parallel.sequence = true;
  job.batch = {.micro = 2, .global = 128, .sequence = 1024};
  job.precision.fp8 = Fp8Recipe::tensorwise;
  job.precision.fp8_param_gather = true;
  const test::RankCase of = test::rank_case("weekly", job, 0, job.parallel.gpus - 1);
  const Bytes state = bytes_of(of.rank.owned, 12);
  const std::int64_t off = (of.rank.footprint.resident_total() + state).value - 300'733'952;
  INFO(off);
  CHECK(std::abs(off) < (8 << 20));
}

// ... and the two runs of one model that differ in FP8 compute alone: 6,632,029,696 bytes in bf16 and 7,321,331,200
// with tensorwise FP8 and no gather (moe/gpt3_mcore_te_tp2_pp2_ep4_etp1_memory_speed and ..._resume_torch_dist_fp8).
TEST_CASE("recorded runs: FP8 compute with bf16 weights costs a row- and a column-wise copy of each linear weight") {
  Job job;
  job.cluster.gpu.name = "H100-SXM-80GB";
  ModelSpec& m = job.model;
  m.layers = 16, m.hidden = 1024, m.ffn = 4096, m.heads = m.kv_heads = 32, m.head_dim = 128, m.vocab = 51712;
  m.qk_norm = true;
  m.mla = MlaSpec{.q_lora_rank = 1536, .kv_lora_rank = 512};
  m.moe = MoeSpec{.experts = 32, .top_k = 4, .ffn = 1024, .shared_ffn = 1024, .first_dense_layers = 1};
  m.mtp = MtpSpec{.layers = 1};
  job.parallel.gpus = 8;
  job.parallel.tensor = job.parallel.pipeline = 2;
  job.parallel.virtual_pipeline = 4;
  job.parallel.expert = 4;
  job.parallel.expert_tensor = 1;
  job.precision.fp8 = Fp8Recipe::tensorwise;
  const StageLayout stage = stage_layout(job, 1);
  const auto copies = static_cast<double>(weight_copies(job, stage).always_bytes().value);
  CHECK(copies == Approx(7'321'331'200.0 - 6'632'029'696.0).epsilon(0.01));
}

TEST_CASE("load targets of FP8 weights: all in bf16 on the device, or on the host and one at a time") {
  Parameter plain = linear(4096, 4096);
  plain.quantized = plain.low_precision = false;
  const StageLayout stage = stage_of({linear(1024, 1024), linear(100, 10), plain});
  const Job job = job_with(Fp8Recipe::blockwise);
  CHECK(quantized_load_bytes(job, stage, LoadTargets::on_device).device == Bytes{(2 << 20) + 2048});
  CHECK(quantized_load_bytes(job, stage, LoadTargets::on_device).host == Bytes{0});
  CHECK(quantized_load_bytes(job, stage, LoadTargets::on_host).device == Bytes{2 << 20});
  CHECK(quantized_load_bytes(job, stage, LoadTargets::on_host).host == Bytes{(2 << 20) + 2000});
}

TEST_CASE("the footprint's terms are the tensors' bytes") {
  StageLayout stage = stage_of({linear(1024, 1024)});
  const Job job = [] {
    Job j = tests::small_gpt(1, 1);
    j.cluster.gpu.name = "H100-SXM-80GB";
    j.precision.fp8 = Fp8Recipe::blockwise;
    j.precision.fp8_param_gather = true;
    return j;
  }();
  stage.chunks.emplace_back();
  const Footprint footprint = footprint_of(job, stage, {1 << 20});
  CHECK(term(footprint, "parameters") == Bytes{1 << 20});
  CHECK(term(footprint, "fp8 scales") == Bytes{512});
  CHECK(term(footprint, "fp8 columns") == Bytes{0});  // lazy without CUDA graphs
  CHECK(footprint.lazy_columns == Bytes{(1 << 20) + 512});
  Job eager = job;
  eager.precision.fp8_columnwise = Columnwise::eager;
  CHECK(term(footprint_of(eager, stage, {1 << 20}), "fp8 columns") == Bytes{(1 << 20) + 512});
  CHECK(footprint_of(eager, stage, {1 << 20}).lazy_columns == Bytes{0});
}
