// Proves that the layout is Megatron's: its own printed shards and buckets, statistics of its algorithm on larger
// jobs, and the memory that its functional tests recorded; and that every element is owned exactly once.
#include "planner/layout.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "planner/chunking.hpp"
#include "tests/catch.hpp"
#include "tests/planner/layout_jobs.hpp"

namespace ebb {
namespace {

nlohmann::json measured_layouts() {
  std::ifstream file(EBB_TEST_DATA "/megatron/measured-layouts.json");
  REQUIRE(file);
  return nlohmann::json::parse(file);
}

Job measured_job(const nlohmann::json& facts) {
  Job job = test::job(test::measured(facts["layers"], facts["hidden"], facts["ffn"], facts["heads"]), 1);
  job.parallel.overlap_grad_reduce = false;
  return job;
}

std::vector<Shard> shards_of(const Job& job, std::int64_t rank) {
  const RankCoordinates at = coordinates_of(job, rank);
  return rank_shards(stage_layout(job, at.pipeline), at.dense_shard, at.expert_shard);
}

Numel largest(const std::vector<Shard>& shards) {
  return std::max_element(shards.begin(), shards.end(), [](auto& a, auto& b) { return a.numel < b.numel; })->numel;
}

TEST_CASE("shards, buffers and buckets equal Megatron's own lists", "[layout]") {
  const nlohmann::json measured = measured_layouts();
  REQUIRE(measured["jobs"].size() == 2);
  for (const nlohmann::json& facts : measured["jobs"]) {
    const Job job = measured_job(facts);
    const StageLayout stage = stage_layout(job, 0);
    const std::vector<Shard> shards = rank_shards(stage, 0, 0);
    CHECK(shards.size() == facts["shards"].get<std::size_t>());
    CHECK(owned(shards).value == facts["total"].get<std::int64_t>());
    CHECK(largest(shards).value == facts["largest"].get<std::int64_t>());
    for (std::size_t i = 0; i < facts["head"].size(); ++i) {
      CHECK(shards[i].numel.value == facts["head"][i].get<std::int64_t>());
    }
    REQUIRE(stage.buffers.size() == facts["buffers"].size());
    for (std::size_t b = 0; b < stage.buffers.size(); ++b) {
      const BufferLayout& buffer = stage.buffers[b];
      const nlohmann::json& expected = facts["buffers"][b];
      CHECK(buffer.numel.value == expected["numel"].get<std::int64_t>());
      CHECK(buffer.unpadded.value == expected["unpadded"].get<std::int64_t>());
      REQUIRE(buffer.buckets.size() == expected["buckets"].size());
      for (std::size_t k = 0; k < buffer.buckets.size(); ++k) {
        CHECK(buffer.buckets[k].numel().value == expected["buckets"][k].get<std::int64_t>());
      }
    }
  }
}

// Statistics of Megatron-LM's layout code (main d98e8a64dd, core/optimizer/distrib_optimizer.py) for the last rank.
struct Statistics {
  const char* name;
  Job job;
  std::int64_t owned;
  std::size_t shards;
  std::int64_t largest;
  std::size_t buckets;
  std::size_t chunks_1e7, chunks_1e8, chunks_1e9;
  std::int64_t largest_chunk_1e8;
};

std::vector<Statistics> statistics() {
  Job single = test::job(test::llama3_8b(), 8);
  single.parallel.overlap_grad_reduce = false;
  return {
      {"gpt3 7B TP4 DP2", test::job(test::gpt3_7b(), 8, 4), 856'649'728, 290, 84'148'224, 34, 99, 10, 2, 99'580'160},
      {"Llama-3 8B DP8", test::job(test::llama3_8b(), 8), 1'003'782'656, 98, 65'667'072, 98, 98, 11, 2, 96'472'064},
      {"Llama-3 8B DP8, one bucket", single, 1'003'782'656, 18, 525'336'576, 1, 13, 9, 3, 525'336'576},
  };
}

TEST_CASE("shard, bucket and chunk statistics equal those of Megatron's layout code", "[layout]") {
  for (const Statistics& expected : statistics()) {
    INFO(expected.name);
    const StageLayout stage = stage_layout(expected.job, 0);
    const std::vector<Shard> shards = shards_of(expected.job, expected.job.parallel.gpus - 1);
    CHECK(owned(shards).value == expected.owned);
    CHECK(shards.size() == expected.shards);
    CHECK(largest(shards).value == expected.largest);
    REQUIRE(stage.buffers.size() == 1);
    CHECK(stage.buffers[0].buckets.size() == expected.buckets);
    CHECK(chunk_by_numel(shards, Numel{10'000'000}).size() == expected.chunks_1e7);
    CHECK(chunk_by_numel(shards, Numel{1'000'000'000}).size() == expected.chunks_1e9);
    const std::vector<Chunk> chunks = chunk_by_numel(shards, Numel{100'000'000});
    CHECK(chunks.size() == expected.chunks_1e8);
    Numel most{0};
    for (const Chunk& chunk : chunks) most = std::max(most, chunk.numel);
    CHECK(most.value == expected.largest_chunk_1e8);
  }
}

// Memory recorded by Megatron-LM's functional tests on 8 H100 (tests/functional_tests/test_cases/<name>/
// golden_values_dev_dgx_h100.json, mem-allocated-bytes on the last rank). `predicted` is what the layout algorithm
// gives for bf16 parameters, fp32 gradients and 12 bytes of state for each owned element; the rest is workspaces.
struct Recorded {
  const char* name;
  Job job;
  std::int64_t predicted;
  std::int64_t recorded;
};

std::vector<Recorded> recorded_cases() {
  Job small = test::job(test::gpt3_small(), 8);
  small.parallel.overlap_grad_reduce = false;
  Job instances = test::job(test::gpt3_small(), 8, 2);
  instances.parallel.optimizer_instances = 2;
  Job interleaved = test::job(test::gpt3_7b(), 8, 1, 4);
  interleaved.parallel.virtual_pipeline = 8;
  Job experts = test::job(test::gpt3_small_moe(), 8);
  experts.parallel.overlap_grad_reduce = false;
  experts.parallel.expert = 8;
  return {
      {"gpt/gpt3_7b_tp4_pp1_memory_speed", test::job(test::gpt3_7b(), 8, 4), 20'559'593'472, 20'663'519'232},
      // The test case does not say on how many GPUs it runs; 128 explain its memory.
      {"gpt/gpt3_15b_8t_release", test::job(test::gpt3_15b(), 128, 8), 13'191'496'704, 13'268'858'880},
      {"gpt/gpt3_mcore_te_tp1_pp1_dist_optimizer_no_mmap_bin_files", small, 480'821'760, 581'489'664},
      {"gpt/gpt3_mcore_te_tp4_pp1_dist_optimizer_overlap_grad_reduce_param_gather", test::job(test::gpt3_small(), 8, 4),
       197'978'112, 299'728'384},
      {"gpt/gpt3_mcore_te_tp2_pp1_resume_torch_dist_multi_dist_optimizer_instances", instances, 388'423'680,
       492'011'008},
      {"gpt/gpt3_7b_tp1_pp4_memory_speed", interleaved, 23'364'796'416, 24'808'996'864},
      // By hand: 12 layers of attention 1536 x 512 + 512 x 512, router 8 x 512 and two LayerNorms of 2 x 512, with
      // 50304 x 512 + 1024 x 512 embeddings and a final LayerNorm of 2 x 512, are 38,937,600 dense elements over 8
      // ranks; one expert of 2 x 1024 x 512 in each layer, 12,582,912 elements, is owned whole. 7.5 and 18 bytes.
      {"moe/gpt3_moe_mcore_te_ep8_resume_torch_dist_dist_optimizer", experts, 518'524'416, 788'357'120},
  };
}

TEST_CASE("static memory of the last rank explains what Megatron's tests recorded", "[layout]") {
  constexpr std::int64_t kMiB = 1 << 20;
  for (const Recorded& expected : recorded_cases()) {
    INFO(expected.name);
    const Job& job = expected.job;
    const StageLayout stage = stage_layout(job, job.parallel.pipeline - 1);
    const Numel state = owned(shards_of(job, job.parallel.gpus - 1));
    const std::int64_t bytes = stage.padded().value * (2 + 4) + state.value * 12;
    CHECK(bytes == expected.predicted);
    // One stage without experts: a constant 74 to 99 MiB of workspaces. Stages and experts retain more, never less.
    const std::int64_t rest = expected.recorded - bytes;
    CHECK(rest >= 73 * kMiB);
    if (job.parallel.pipeline == 1 && !job.model.moe) CHECK(rest <= 100 * kMiB);
  }
}

TEST_CASE("a stage with latent attention, experts and a prediction layer adds up by hand", "[layout]") {
  // .../moe/gpt3_mcore_te_tp2_pp2_ep4_etp1_mtp_resume_torch_dist_fp8, last stage: eight MoE layers and the prediction
  // layer, its copy of the embedding and the output layer (1024 V / 2 elements each). In every layer, at TP 2:
  //   MLA: proj 1024 x 2048, q 1536 x 1024 + 3072 x 1536, kv 576 x 1024 + 4096 x 512, norms 1536 + 512 + 2 x 1024
  //   MoE: router 32 x 1024, shared expert 1024 x 1024 + 1024 x 512; eight experts of 3 x 1024 x 1024
  ModelSpec model = test::deepseek_v3();
  model.layers = 16, model.hidden = 1024, model.ffn = 4096, model.heads = model.kv_heads = 32, model.vocab = 50257;
  model.vocab_divisible_by = 3232;
  model.moe = MoeSpec{.experts = 32, .top_k = 4, .ffn = 1024, .shared_ffn = 1024, .first_dense_layers = 1};
  Job job = test::job(model, 8, 2, 2);
  job.parallel.virtual_pipeline = 4, job.parallel.expert = 4, job.parallel.expert_tensor = 1;
  const std::int64_t attention = 1024 * 2048 + 1536 * 1024 + 3072 * 1536 + 576 * 1024 + 4096 * 512 + 1536 + 512 + 2048;
  const std::int64_t layer = attention + 32 * 1024 + 1024 * 1024 + 1024 * 512;
  const std::int64_t around = 512 * 2048 + 4 * 1024;  // eh_proj; enorm, hnorm, its final norm, the model's final norm
  const std::int64_t vocabulary = 51712;              // 50257 rounded up to 3232 x 2
  std::map<bool, std::int64_t> elements;
  for (const Parameter& p : stage_layout(job, 1).parameters) elements[p.expert] += p.numel().value;
  CHECK(elements[false] == 9 * layer + around + 1024 * vocabulary);
  CHECK(elements[true] == 9 * 8 * 3 * 1024 * 1024);
  CHECK(elements[false] - 1024 * vocabulary == 115'220'480);
}

TEST_CASE("bucket size: the default counts the whole data-parallel group, and only the first chunk is bucketed",
          "[layout]") {
  Job job = test::job(test::llama3_8b(), 256, 1, 2);
  job.parallel.virtual_pipeline = 2;
  const StageLayout first = stage_layout(job, 0);
  REQUIRE(first.buffers.size() == 2);
  CHECK(first.buffers[0].model_chunk == 0);
  // 128 ranks: 1e6 each, so every bucket but the last passes 128e6 elements, and by less than its last parameter.
  const std::vector<Bucket>& buckets = first.buffers[0].buckets;
  REQUIRE(buckets.size() > 2);
  for (std::size_t i = 0; i + 1 < buckets.size(); ++i) CHECK(buckets[i].unpadded >= Numel{128'000'000});
  CHECK(first.buffers[1].buckets.size() == 1);
  for (const BufferLayout& buffer : stage_layout(job, 1).buffers) CHECK(buffer.buckets.size() == 1);

  job.parallel.optimizer_instances = 4;  // shards 32 ways, buckets as before
  const StageLayout instances = stage_layout(job, 0);
  CHECK(instances.buffers[0].shards == 32);
  CHECK(instances.buffers[0].buckets.size() == buckets.size());

  job.parallel.bucket_numel = Numel{1};  // every parameter its own bucket
  const StageLayout own = stage_layout(job, 0);
  CHECK(own.buffers[0].buckets.size() == own.buffers[0].ranges.size());
}

TEST_CASE("a shared embedding is alone in its bucket", "[layout]") {
  Job job = test::job(test::llama32_1b(), 8, 1, 2);
  for (const std::int64_t rank : {0, 1}) {
    const StageLayout stage = stage_layout(job, rank);
    REQUIRE(stage.buffers.size() == 1);
    const BufferLayout& buffer = stage.buffers[0];
    std::map<std::uint32_t, int> members;
    std::uint32_t shared = 0;
    int copies = 0;
    for (const ParameterRange& range : buffer.ranges) {
      ++members[range.bucket];
      if (!stage.parameters[range.parameter].shared_embedding) continue;
      shared = range.bucket;
      ++copies;
    }
    CHECK(copies == 1);
    CHECK(members[shared] == 1);
    CHECK(buffer.buckets.size() > 1);
  }
  job.parallel.pipeline = 1;  // one stage: a single weight and nothing to separate
  for (const Parameter& parameter : stage_layout(job, 0).parameters) CHECK_FALSE(parameter.shared_embedding);
}

TEST_CASE("experts and fp8 weights have buffers of their own", "[layout]") {
  Job job = test::job(test::mixtral_8x7b(), 64, 2);
  job.parallel.expert = 8, job.parallel.expert_tensor = 1;
  job.precision.fp8 = Fp8Recipe::blockwise;
  job.precision.fp8_param_gather = true;
  const StageLayout stage = stage_layout(job, 0);
  REQUIRE(stage.buffers.size() == 3);  // bf16 (embedding comes first), fp8 dense, fp8 experts
  CHECK((!stage.buffers[0].expert && !stage.buffers[0].quantized && stage.buffers[0].shards == 32));
  CHECK((!stage.buffers[1].expert && stage.buffers[1].quantized && stage.buffers[1].shards == 32));
  CHECK((stage.buffers[2].expert && stage.buffers[2].quantized && stage.buffers[2].shards == 8));
  for (const BufferLayout& buffer : stage.buffers) {
    for (const ParameterRange& range : buffer.ranges) {
      const Parameter& parameter = stage.parameters[range.parameter];
      const bool linear = parameter.name.find("linear_") != std::string::npos && parameter.columns > 0;
      CHECK(buffer.quantized == linear);
      CHECK(buffer.expert == (parameter.name.find(".experts.") != std::string::npos));
    }
  }
  // The same experts without expert parallelism are ordinary dense parameters.
  job.parallel.expert = 1, job.parallel.expert_tensor = 2;
  for (const BufferLayout& buffer : stage_layout(job, 0).buffers) CHECK_FALSE(buffer.expert);
}

TEST_CASE("optimizer order: chained optimizer, group, buffer, bucket, reversed definition", "[layout]") {
  const Job job = test::deepseek_v3_2048();
  for (const std::int64_t rank : {0, 1000, 2047}) {
    const RankCoordinates at = coordinates_of(job, rank);
    const StageLayout stage = stage_layout(job, at.pipeline);
    const std::vector<Shard> shards = rank_shards(stage, at.dense_shard, at.expert_shard);
    for (std::size_t i = 1; i < shards.size(); ++i) {
      const Shard &a = shards[i - 1], &b = shards[i];
      const auto key = [&stage](const Shard& s) {
        return std::tuple(s.optimizer, s.group, s.buffer, s.bucket, stage.parameters.size() - s.parameter);
      };
      CHECK(key(a) < key(b));
      CHECK(b.group == (stage.parameters[b.parameter].columns == 0 ? 1 : 0));
    }
  }
}

TEST_CASE("ranks: tensor fastest, then context, data, pipeline; experts decompose the same ranks", "[layout]") {
  Job job = test::job(test::mixtral_8x7b(), 64, 2, 2);
  job.parallel.context = 2, job.parallel.expert = 4, job.parallel.expert_tensor = 1,
  job.parallel.optimizer_instances = 2;
  for (std::int64_t rank = 0; rank < 64; ++rank) {
    const RankCoordinates at = coordinates_of(job, rank);
    CHECK(rank == at.tensor + 2 * (at.context + 2 * (at.data + 8 * at.pipeline)));
    CHECK(at.dense_shard == (at.data * 2 + at.context) % 8);  // 16 ranks in two instances
    CHECK(at.expert == rank % 4);
    CHECK(at.expert_shard == rank / 4 % 8 % 4);
  }
  CHECK_THROWS_AS(coordinates_of(job, 64), InputError);
  CHECK_THROWS_AS(coordinates_of(job, -1), InputError);
}

std::int64_t pick(std::mt19937_64& random, std::vector<std::int64_t> values) {
  return values[random() % values.size()];
}

/// A small job with every feature that moves parameters between buffers, buckets or ranks.
Job random_job(std::mt19937_64& random) {
  Job job;
  ModelSpec& m = job.model;
  m.layers = pick(random, {4, 8});
  m.heads = 4, m.kv_heads = pick(random, {2, 4}), m.head_dim = pick(random, {4, 10}), m.hidden = pick(random, {12, 40});
  m.ffn = pick(random, {26, 64}), m.vocab = pick(random, {97, 512}), m.max_positions = 33;
  m.vocab_divisible_by = pick(random, {1, 128});
  m.gated = random() % 2, m.tied_embeddings = random() % 2, m.bias = random() % 2, m.qk_norm = random() % 2;
  m.norm = random() % 2 ? Norm::rmsnorm : Norm::layernorm;
  m.positions = random() % 2 ? Positions::rope : Positions::learned;
  if (random() % 4 == 0) m.mla = MlaSpec{pick(random, {0, 6}), 5, 4, 2, 6};
  if (random() % 2) {
    m.moe = MoeSpec{.experts = 4,
                    .top_k = 2,
                    .ffn = pick(random, {8, 22}),
                    .shared_ffn = pick(random, {0, 18}),
                    .shared_gate = true,
                    .latent = pick(random, {0, 7}),
                    .first_dense_layers = pick(random, {0, 1})};
  }
  if (random() % 3 == 0) m.mtp = MtpSpec{.layers = 1};
  Parallel& p = job.parallel;
  p.tensor = pick(random, {1, 2}), p.pipeline = pick(random, {1, 2}), p.context = pick(random, {1, 2});
  p.virtual_pipeline = p.pipeline > 1 ? pick(random, {1, 2}) : 1;
  p.expert = m.moe ? pick(random, {1, 2, 4}) : 1;
  p.expert_tensor = m.moe ? pick(random, {1, p.tensor}) : p.tensor;
  p.gpus = 8 * p.tensor * p.pipeline * p.context * pick(random, {1, 3});
  p.optimizer_instances = pick(random, {1, 2});
  if (p.expert_data() % p.optimizer_instances != 0) p.optimizer_instances = 1;
  p.overlap_grad_reduce = random() % 4 != 0;
  p.bucket_numel = Numel{pick(random, {1, 700, 5000, 1'000'000})};
  job.precision.fp8 = random() % 2 ? Fp8Recipe::delayed : Fp8Recipe::none;
  job.precision.fp8_param_gather = true;
  return job;
}

/// What the sharding groups' ranks own of each parameter, put together; every piece [offset, offset + numel).
using Pieces = std::map<std::uint32_t, std::vector<std::pair<std::int64_t, std::int64_t>>>;

void collect(const std::vector<Shard>& shards, std::uint16_t optimizer, Pieces& pieces) {
  for (const Shard& shard : shards) {
    if (shard.optimizer == optimizer) pieces[shard.parameter].emplace_back(shard.offset.value, shard.numel.value);
  }
}

TEST_CASE("every element of every parameter is owned exactly once in its sharding group", "[layout][property]") {
  std::mt19937_64 random(20261130);
  for (int round = 0; round < 300; ++round) {
    const Job job = random_job(random);
    const Parallel& p = job.parallel;
    for (std::int64_t rank = 0; rank < p.pipeline; ++rank) {
      const StageLayout stage = stage_layout(job, rank);
      Pieces pieces;
      for (std::int64_t r = 0; r < p.dense_shards(); ++r) collect(rank_shards(stage, r, 0), 0, pieces);
      for (std::int64_t r = 0; r < p.expert_shards(); ++r) collect(rank_shards(stage, 0, r), 1, pieces);
      std::size_t wrong = 0;
      for (std::uint32_t i = 0; i < stage.parameters.size(); ++i) {
        std::sort(pieces[i].begin(), pieces[i].end());
        std::int64_t behind = 0;
        for (const auto& [offset, numel] : pieces[i]) {
          wrong += offset != behind || numel <= 0;
          behind = offset + numel;
        }
        wrong += behind != stage.parameters[i].numel().value;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("buffers are contiguous, aligned and hold each parameter once", "[layout][property]") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    const Job job = random_job(random);
    for (std::int64_t rank = 0; rank < job.parallel.pipeline; ++rank) {
      const StageLayout stage = stage_layout(job, rank);
      std::vector<int> seen(stage.parameters.size(), 0);
      std::size_t wrong = 0;
      for (const BufferLayout& buffer : stage.buffers) {
        Numel behind{0};
        for (const Bucket& bucket : buffer.buckets) {
          wrong += bucket.start != behind || bucket.numel().value % buffer.shards != 0 || bucket.end.value % 128 != 0;
          wrong += bucket.unpadded > bucket.numel() || bucket.unpadded.value <= 0;
          behind = bucket.end;
        }
        wrong += behind != buffer.numel;
        for (const ParameterRange& range : buffer.ranges) {
          const Bucket& bucket = buffer.buckets[range.bucket];
          wrong += range.start.value % 64 != 0 || range.start < bucket.start;
          wrong += range.end > bucket.start + bucket.unpadded;
          wrong += range.end - range.start != stage.parameters[range.parameter].numel();
          ++seen[range.parameter];
        }
      }
      CHECK(wrong == 0);
      CHECK(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }));
    }
  }
}

}  // namespace
}  // namespace ebb
