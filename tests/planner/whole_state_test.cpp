// Proves what a rank holds where optimizer state is not sliced: without the distributed optimizer, with fp32 or fp16
// parameters, under Muon; and that such jobs plan, verify and simulate. Sizes are counted by hand.
#include <algorithm>

#include "models/memory/torch_allocator.hpp"
#include "planner/activations.hpp"
#include "planner/layer_wise_layout.hpp"
#include "planner/lower.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/reserved.hpp"
#include "planner/search.hpp"
#include "planner/term_account.hpp"
#include "planner/verify.hpp"
#include "tests/catch.hpp"
#include "tests/planner/layout_jobs.hpp"
#include "tests/planner/lowering_cases.hpp"

namespace ebb {
namespace {

/// 12 layers of 512 with GPT-2's vocabulary padded to 50,304, learned positions, biases, tied. A layer: projection
/// 512 x 512 + 512, query, key and value 1536 x 512 + 1536, MLP 2 x 2048 x 512 + 2048 + 512, norms 4 x 512.
constexpr std::int64_t kLayer = 512 * 512 + 512 + 1536 * 512 + 1536 + 2 * 2048 * 512 + 2048 + 512 + 4 * 512;
constexpr std::int64_t kSmall = 50304 * 512 + 1024 * 512 + 12 * kLayer + 2 * 512;
static_assert(kSmall == 64'109'568);

Job small(OptimizerSettings optimizer) {
  Job job = test::job(test::gpt3_small(), 8);
  job.cluster = load_job("llama3-8b-hgx-h200").cluster;
  job.name = "small";
  job.batch = {.micro = 4, .global = 32, .sequence = 1024};
  job.optimizer = optimizer;
  job.parallel.overlap_grad_reduce = job.parallel.overlap_param_gather = false;
  return job;
}

OptimizerSettings replicated(OptimizerKind kind = OptimizerKind::adam) { return {.kind = kind, .distributed = false}; }

OptimizerSettings layer_wise(bool laid_out) {
  return {.kind = OptimizerKind::muon, .distributed = laid_out, .layer_wise = true};
}

std::vector<Shard> shards_of(const Job& job, std::int64_t rank) {
  const RankCoordinates at = coordinates_of(job, rank);
  return rank_shards(stage_layout(job, at.pipeline), at.dense_shard, at.expert_shard);
}

/// Parameters of the given sizes in one buffer of `ranks` ranks.
StageLayout stage_of(const std::vector<std::int64_t>& sizes, std::int64_t ranks) {
  StageLayout stage;
  stage.optimizer = layer_wise(false);
  BufferLayout& buffer = stage.buffers.emplace_back();
  buffer.shards = ranks;
  buffer.division = Division::whole;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    stage.parameters.push_back({.name = std::to_string(i), .rows = sizes[i], .columns = 1});
    buffer.ranges.push_back({.parameter = static_cast<std::uint32_t>(i)});
  }
  return stage;
}

}  // namespace

TEST_CASE("without the distributed optimizer: no padding, no slices, parameters apart, every rank owns everything") {
  Job job = small(replicated());
  job.parallel.overlap_grad_reduce = true;
  job.model.tied_embeddings = false;  // two embeddings that close no bucket of their own
  const StageLayout stage = stage_layout(job, 0);
  REQUIRE(stage.buffers.size() == 1);
  const BufferLayout& buffer = stage.buffers[0];
  CHECK(buffer.numel.value == kSmall + 50304 * 512);
  CHECK(buffer.unpadded == buffer.numel);
  CHECK_FALSE(buffer.holds_parameters);
  // Reversed: the output layer 25.8 M and five layers of 3.2 M pass 40 M elements; so do the other seven with the
  // embeddings.
  REQUIRE(buffer.buckets.size() == 2);
  CHECK(buffer.buckets[0].end.value >= 40'000'000);
  for (const std::int64_t rank : {0, 7}) {
    const std::vector<Shard> shards = shards_of(job, rank);
    CHECK(shards.size() == 12 * 12 + 5);
    CHECK(owned(shards) == buffer.numel);
    CHECK(stage.parameters[shards[0].parameter].name == "embedding.word_embeddings.weight");
    CHECK(stage.parameters[shards[2].parameter].name == "decoder.layers.0.self_attention.linear_proj.weight");
  }
}

TEST_CASE("bytes an element: 18 in bf16, 20 in fp16, 16 in fp32, of which the optimizer keeps 12, 12 and 8") {
  struct Recipe {
    Dtype params, grads;
    std::int64_t all, state;
  };
  for (const Recipe& recipe : {Recipe{Dtype::bf16, Dtype::fp32, 18, 12}, Recipe{Dtype::fp16, Dtype::fp16, 20, 12},
                               Recipe{Dtype::fp32, Dtype::fp32, 16, 8}}) {
    Job job = small(replicated());
    job.precision.params = recipe.params;
    job.precision.grads = recipe.grads;
    const test::RankCase of = test::rank_case("small", job);
    const TermAccount terms = terms_between_steps(allocation_trace(of.rank, {}));
    const Bytes held = terms.of(MemoryTerm::parameters) + terms.of(MemoryTerm::gradients) +
                       terms.of(MemoryTerm::gradient_copies) + terms.of(MemoryTerm::masters) +
                       terms.of(MemoryTerm::moments);
    CHECK(held == Bytes{recipe.all * kSmall});
    CHECK(terms.of(MemoryTerm::masters) + terms.of(MemoryTerm::moments) == Bytes{recipe.state * kSmall});
    CHECK(stored_state(job.precision, of.rank.shards) == Bytes{recipe.state * kSmall});
  }
}

TEST_CASE("Muon: one moment for matrices, two for embeddings and vectors, each in an optimizer of its own") {
  const Job job = small(replicated(OptimizerKind::muon));
  const std::vector<Shard> shards = shards_of(job, 0);
  // Position embeddings are not marked as embeddings in Megatron-LM: a matrix like others.
  constexpr std::int64_t kMatrices = 12 * (512 * 512 + 1536 * 512 + 2 * 2048 * 512) + 1024 * 512;
  std::int64_t matrices = 0;
  std::int64_t others = 0;
  for (const Shard& shard : shards) {
    CHECK(shard.optimizer == (shard.moments == 1 ? 0 : 2));
    (shard.moments == 1 ? matrices : others) += shard.numel.value;
  }
  CHECK(matrices == kMatrices);
  CHECK(others == kSmall - kMatrices);
  CHECK(stored_state(job.precision, shards) == Bytes{8 * kMatrices + 12 * (kSmall - kMatrices)});
  CHECK(std::is_sorted(shards.begin(), shards.end(),
                       [](const Shard& a, const Shard& b) { return a.optimizer < b.optimizer; }));
}

// The example in Megatron-LM's own comment: 10 parameters, ascending, on 4 ranks.
TEST_CASE("layer-wise without a layout: parameters are dealt out there and back") {
  StageLayout stage = stage_of({10, 20, 30, 40, 50, 60, 70, 80, 90, 100}, 4);
  deal_parameters(stage);
  std::vector<std::vector<std::uint32_t>> by_rank(4);
  for (const ParameterRange& range : stage.buffers[0].ranges) by_rank[range.owner].push_back(range.parameter);
  CHECK(by_rank == std::vector<std::vector<std::uint32_t>>{{0, 7, 8}, {1, 6, 9}, {2, 5}, {3, 4}});
}

TEST_CASE("layer-wise with a layout: the largest first, each to the rank with least, in parts of one length") {
  std::vector<Parameter> parameters;
  for (const std::int64_t size : {40, 50, 60, 100})
    parameters.push_back({.name = std::to_string(size), .rows = size, .columns = 1});
  BufferLayout buffer;
  buffer.shards = 2;
  buffer.division = Division::whole;
  place_layer_wise(parameters, std::vector<std::uint32_t>{3, 2, 1, 0}, std::nullopt, 128, buffer);
  // Rank 0: 100 at 0, 40 at 128. Rank 1: 60 at 0, 50 at 64. The longer part has 168 elements: 192.
  REQUIRE(buffer.buckets.size() == 1);
  CHECK(buffer.numel.value == 2 * 192);
  CHECK(buffer.unpadded.value == 250);
  const std::vector<std::array<std::int64_t, 4>> expected = {
      {3, 0, 0, 100}, {2, 1, 192, 252}, {1, 1, 256, 306}, {0, 0, 128, 168}};
  REQUIRE(buffer.ranges.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(buffer.ranges[i].parameter == expected[i][0]);
    CHECK(buffer.ranges[i].owner == expected[i][1]);
    CHECK(buffer.ranges[i].start.value == expected[i][2]);
    CHECK(buffer.ranges[i].end.value == expected[i][3]);
  }
}

TEST_CASE("layer-wise: each parameter is whole on one rank, with a layout what Adam steps is sliced") {
  for (const bool laid_out : {false, true}) {
    INFO("laid out " << laid_out);
    const Job job = small(layer_wise(laid_out));
    const StageLayout stage = stage_layout(job, 0);
    std::vector<std::int64_t> covered(stage.parameters.size(), 0);
    for (std::int64_t rank = 0; rank < 8; ++rank)
      for (const Shard& shard : shards_of(job, rank)) {
        covered[shard.parameter] += shard.numel.value;
        if (shard.moments == 1 || !laid_out) CHECK(shard.numel == stage.parameters[shard.parameter].numel());
      }
    for (std::size_t i = 0; i < covered.size(); ++i) CHECK(covered[i] == stage.parameters[i].numel().value);
    CHECK(stage.buffers.size() == (laid_out ? 2 : 1));
  }
}

TEST_CASE("with --overlap-param-gather-with-optimizer-step the first chunk is one bucket with its own optimizer") {
  Job job = test::job(test::gpt3_small(), 8, 1, 4);
  job.parallel.virtual_pipeline = 3;
  job.parallel.overlap_grad_reduce = job.parallel.overlap_param_gather = job.parallel.gather_with_step = true;
  job.parallel.bucket_numel = Numel{1'000'000};
  const StageLayout stage = stage_layout(job, 0);
  for (const BufferLayout& buffer : stage.buffers) CHECK(buffer.buckets.size() == (buffer.model_chunk == 0 ? 2 : 1));
  for (const Shard& shard : shards_of(job, 0)) CHECK(shard.optimizer == (stage.buffers[shard.buffer].model_chunk > 0));
  job.parallel.gather_with_step = false;
  CHECK(stage_layout(job, 0).buffers[0].buckets.size() > 2);
}

TEST_CASE("buckets padded for the network end at multiples of 65,536 elements and of the ranks") {
  Job job = test::job(test::gpt3_small(), 24);
  job.parallel.pad_buckets = true;
  const StageLayout stage = stage_layout(job, 0);
  for (const Bucket& bucket : stage.buffers[0].buckets) CHECK(bucket.end.value % (65536 * 3) == 0);
}

TEST_CASE("a learning rate of their own makes embedding and output layer a group between the other two") {
  Job job = test::job(test::gpt3_7b(), 8);
  job.optimizer.decoupled_lr = true;
  const StageLayout stage = stage_layout(job, 0);
  const std::vector<Shard> shards = rank_shards(stage, 0, 0);
  CHECK(std::is_sorted(shards.begin(), shards.end(), [](const Shard& a, const Shard& b) { return a.group < b.group; }));
  for (const Shard& shard : shards) {
    const Parameter& parameter = stage.parameters[shard.parameter];
    CHECK(shard.group == (parameter.embedding_or_output ? 1 : parameter.decayed ? 0 : 2));
  }
}

TEST_CASE("ranks with the pipeline inside: tensor, context, pipeline, data") {
  Job job = test::job(test::mixtral_8x7b(), 32, 2, 2);
  job.parallel.context = 2, job.parallel.expert = 2, job.parallel.expert_tensor = 2;
  job.parallel.pipeline_inner = true;
  for (std::int64_t rank = 0; rank < 32; ++rank) {
    const RankCoordinates at = coordinates_of(job, rank);
    CHECK(rank == at.tensor + 2 * (at.context + 2 * (at.pipeline + 2 * at.data)));
    CHECK(at.dense_shard == at.data * 2 + at.context);
    CHECK(at.expert == rank / 2 % 2);
    CHECK(at.expert_shard == rank / 8);
  }
}

TEST_CASE("jobs whose state is not sliced plan without hazards, agree with their trace, and are searched") {
  Job fp32 = small(replicated());
  fp32.precision.params = Dtype::fp32;
  Job fp16 = small(replicated());
  fp16.precision.params = fp16.precision.grads = Dtype::fp16;
  Job overlapped = small(replicated());
  overlapped.parallel.overlap_grad_reduce = true;
  for (const Job& job : {small(replicated()), fp32, fp16, overlapped, small(replicated(OptimizerKind::lion)),
                         small(replicated(OptimizerKind::muon)), small(layer_wise(false)), small(layer_wise(true))}) {
    INFO(static_cast<int>(job.optimizer.kind)
         << job.optimizer.distributed << job.optimizer.layer_wise << name_of(job.precision.params));
    const test::RankCase of = test::rank_case("small", job);
    const Plan plan = lower(of.rank, {});
    CHECK(verify(plan).empty());
    Bytes between{0};
    for (const Buffer& buffer : plan.buffers)
      if (buffer.memory == Memory::device && buffer.initial) between += buffer.bytes;
    const PredictedMemory memory = replay(allocation_trace(of.rank, {}), kUnlimited);
    // Many tensors of one to four megabytes: how the allocator cuts its 20 MiB segments is the trace's alone.
    CHECK(static_cast<double>(memory.allocated.value) == Approx(static_cast<double>(between.value)).epsilon(0.016));
    for (const Op& op : plan.ops) {
      if (op.kind != OpKind::collective || !(op.states & (kGrads | kParams))) continue;
      const bool laid_out = job.optimizer.distributed;
      if (op.states & kGrads) CHECK(op.work == (laid_out ? Work::reduce_scatter : Work::all_reduce));
      if (op.states & kParams) CHECK(job.optimizer.layer_wise);
    }
    const SearchResult found = search(job, {});
    const auto resident = std::find_if(found.candidates.begin(), found.candidates.end(), [](const Answer& answer) {
      return answer.candidate.policy == Policy::resident;
    });
    REQUIRE(resident != found.candidates.end());
    CHECK(resident->step.value > 0);
  }
}

// gpt3_mcore_te_tp2_pp2_resume_torch_dist_defer_embedding_wgrad_compute, the recorded case that fuses gradients, has
// 30.1 MiB more than its terms without them, of which 2.4 MiB are left in its twin that does not fuse.
TEST_CASE("fused weight gradients leave one stand-in a shape, the output layer's among them") {
  Job job = test::job(test::gpt3_small(), 8, 2, 2);
  job.batch = {.micro = 4, .global = 32, .sequence = 1024};
  const StageLayout last = stage_layout(job, 1);
  // Half of: query, key and value 1536 x 512, projection 512 x 512, MLP 2048 x 512 twice, output 50,432 x 512.
  constexpr std::int64_t kHalf = 512 * (768 + 256 + 1024 + 1024);
  const auto sum = [&](const StageLayout& stage) { return stage_activations(job, stage).gradient_stand_ins; };
  CHECK(sum(last) == Bytes{2 * (kHalf + 25216 * 512)});
  CHECK(sum(stage_layout(job, 0)) == Bytes{2 * kHalf});
  CHECK(sum(last).value >> 20 == 27);
  job.activations.gradient_fusion = false;
  CHECK(sum(last) == Bytes{0});
}

TEST_CASE("Muon's products take 4 m^2 n + 2 m^3 FLOPs five times, and the step as much longer") {
  CHECK(newton_schulz_flops(512, 2048).value == 5.0 * (4.0 * 512 * 512 * 2048 + 2.0 * 512 * 512 * 512));
  CHECK(newton_schulz_flops(2048, 512).value == newton_schulz_flops(512, 2048).value);
  const Job adam = small(replicated());
  const Job muon = small(replicated(OptimizerKind::muon));
  double flops = 0;
  const StageLayout stage = stage_layout(muon, 0);
  for (const Parameter& p : stage.parameters)
    if (p.columns > 0 && !p.embedding_or_output) flops += newton_schulz_flops(p.rows, p.columns).value;
  const Gpu& gpu = muon.cluster.gpu;
  const double products = flops / (gpu.matrix_bf16.value.value * gpu.compute_efficiency.value);
  const double more = evaluate(muon, {}).optimizer.value - evaluate(adam, {}).optimizer.value;
  CHECK(more > 0.5 * products);  // less what momentum alone does not move
  CHECK(more < products);
}

}  // namespace ebb
