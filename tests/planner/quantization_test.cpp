// Quantisation after the step: what a call of it moves, holds and reduces, and that plans with it are safe.
#include "planner/quantization.hpp"

#include <algorithm>
#include <set>

#include "planner/flags.hpp"
#include "planner/quantize_calls.hpp"
#include "planner/rules.hpp"
#include "planner/search.hpp"
#include "planner/verify.hpp"
#include "tests/catch.hpp"
#include "tests/planner/lowering_cases.hpp"
#include "tests/planner/plan_by_hand.hpp"

using namespace ebb;

namespace {

/// Two virtual stages, so that a rank has two buffers of FP8 weights with bf16 ones between them; experts.
Job recipe_job(Fp8Recipe recipe, bool experts) {
  Job job = load_job("llama3-8b-hgx-h200");
  job.model.layers = 8;
  job.model.hidden = 1024;
  job.model.ffn = 4096;
  job.model.heads = 16;
  job.model.kv_heads = 8;
  job.model.head_dim = 64;
  job.parallel.pipeline = job.parallel.virtual_pipeline = 2;
  job.batch.global = 64;
  if (experts) {
    job.model.moe = MoeSpec{.experts = 8, .top_k = 2, .ffn = 1024};
    job.parallel.expert = 2;
  }
  job.precision.fp8 = recipe;
  job.precision.fp8_param_gather = true;
  return job;
}

std::int64_t model_numel(const RankModel& rank, const QuantizeCall& call) {
  std::int64_t sum = 0;
  for (const std::uint32_t index : call.parameters) sum += rank.stage->parameters[index].numel().value;
  return sum;
}

std::vector<Candidate> candidates(const RankModel& rank) {
  return {{},
          {.policy = Policy::full_reload},
          {.policy = Policy::windowed, .chunk_size_mb = 16},
          {.policy = Policy::windowed, .chunk_size_mb = 16, .fraction = 0.5},
          {.policy = Policy::chunked, .chunk_numel = rank.owned},
          {.policy = Policy::chunked, .chunk_numel = {20'000'000}}};
}

}  // namespace

TEST_CASE("largest values of a parameter, by hand: a matrix's, a block's, a tile's") {
  Parameter p;
  p.rows = 576, p.columns = 7168;
  Precision precision;
  precision.fp8 = Fp8Recipe::tensorwise;
  CHECK(largest_bytes(precision, p) == Bytes{4});
  precision.fp8 = Fp8Recipe::delayed;
  CHECK(largest_bytes(precision, p) == Bytes{4});
  precision.fp8 = Fp8Recipe::blockwise;
  CHECK(largest_bytes(precision, p) == Bytes{4 * 5 * 56});
  p.columns = 7000;  // 55 blocks, padded to 56
  CHECK(largest_bytes(precision, p) == Bytes{4 * 5 * 56});
  precision.fp8 = Fp8Recipe::none;
  precision.fp4 = Fp4Recipe::nvfp4;
  CHECK(largest_bytes(precision, p) == Bytes{4 * (36 * 438 + 1)});
}

TEST_CASE("who quantises after the step") {
  Precision p;
  CHECK_FALSE(requantizes(p));
  p.fp8 = Fp8Recipe::blockwise;
  CHECK_FALSE(requantizes(p));  // bf16 weights, quantised in forward
  p.fp8_param_gather = true;
  CHECK(requantizes(p));
  p.fp8 = Fp8Recipe::mxfp8;
  CHECK_FALSE(requantizes(p));  // gathered in bf16
  p.fp8 = Fp8Recipe::delayed;
  CHECK(requantizes(p));
  p.precision_aware = true;  // Adam writes FP8 itself
  CHECK_FALSE(requantizes(p));
}

TEST_CASE("chunks of the second pass: whole parameters up to N, across buffers, the same on every rank") {
  const Job job = recipe_job(Fp8Recipe::blockwise, false);
  constexpr Numel kLimit{20'000'000};
  std::vector<std::vector<std::uint32_t>> first;
  std::int64_t written = 0;
  for (std::int64_t r = 0; r < 4; ++r) {
    const test::RankCase of = test::rank_case("", job, 0, r);
    const std::vector<QuantizeCall> calls = quantize_calls(of.rank, kLimit, 7);
    std::vector<std::vector<std::uint32_t>> mine;
    std::set<std::uint32_t> seen;
    bool crosses = false;
    for (std::size_t k = 0; k < calls.size(); ++k) {
      CHECK(calls[k].chunk == 7 + k);
      CHECK(model_numel(of.rank, calls[k]) <= kLimit.value);
      mine.push_back(calls[k].parameters);
      seen.insert(calls[k].parameters.begin(), calls[k].parameters.end());
      for (const Part& run : calls[k].runs) {
        written += run.range.numel().value;
        CHECK(owned(run.shards) == run.range.numel());
      }
      std::set<std::uint32_t> buffers;
      for (const Part& run : calls[k].runs)
        for (const Shard& shard : run.shards) buffers.insert(shard.buffer);
      crosses = crosses || buffers.size() > 1;
    }
    if (r == 0) first = mine;
    CHECK(mine == first);
    const auto quantized = std::count_if(of.stage->parameters.begin(), of.stage->parameters.end(),
                                         [](const Parameter& p) { return p.quantized; });
    CHECK(seen.size() == static_cast<std::size_t>(quantized));
    const std::vector<QuantizeCall> whole = quantize_calls(of.rank, std::nullopt, 0);
    REQUIRE(whole.size() == 1);
    CHECK(whole[0].parameters.size() == static_cast<std::size_t>(quantized));
  }
  std::int64_t all = 0;
  for (const Parameter& p : stage_layout(job, 0).parameters) all += p.quantized ? p.numel().value : 0;
  CHECK(written == all);  // each element by the one rank that owns it
}

// Router weights, which stay bf16, lie between the FP8 weights of virtual stages in the optimizer's order.
TEST_CASE("a call over weights that are not neighbours has a run for each stretch; experts have a call of their own") {
  Job job = recipe_job(Fp8Recipe::blockwise, true);
  job.parallel.virtual_pipeline = 4;
  std::size_t stretches = 0;
  for (std::int64_t r = 0; r < 4; ++r) {
    const test::RankCase of = test::rank_case("", job, 0, r);
    const std::vector<QuantizeCall> whole = quantize_calls(of.rank, std::nullopt, 0);
    REQUIRE(whole.size() == 2);
    CHECK_FALSE(whole[0].expert);
    CHECK(whole[1].expert);
    stretches = std::max(stretches, whole[0].runs.size());
    for (const QuantizeCall& call : whole)
      for (const Part& run : call.runs)
        for (const Shard& shard : run.shards) CHECK(of.stage->buffers[shard.buffer].expert == call.expert);
  }
  CHECK(stretches == 3);  // those of the first two stages are neighbours: embedding first, routers last
}

// 4 bytes of master each way a second time; per chunk one all-reduce of its parameters' largest values.
TEST_CASE("chunked under FP8 gather: 16 bytes an owned FP8 element each way, one reduction a chunk") {
  for (const Fp8Recipe recipe : {Fp8Recipe::delayed, Fp8Recipe::tensorwise, Fp8Recipe::blockwise}) {
    const Job job = recipe_job(recipe, true);
    const test::RankCase of = test::rank_case("", job, 0, 1);
    const Plan plan = lower(of.rank, {.policy = Policy::chunked, .chunk_numel = {20'000'000}});
    std::int64_t fp8 = 0;
    for (const Shard& shard : of.rank.shards) fp8 += of.stage->buffers[shard.buffer].quantized ? shard.numel.value : 0;
    std::int64_t in = 0;
    std::int64_t out = 0;
    std::vector<std::int64_t> reductions;
    for (const Op& op : plan.ops) {
      if (op.kind == OpKind::copy_h2d) in += op.bytes.value;
      if (op.kind == OpKind::copy_d2h) out += op.bytes.value;
      if (op.work == Work::all_reduce && op.phase == Phase::step) reductions.push_back(op.bytes.value);
    }
    CHECK(in == 12 * of.rank.owned.value + 4 * fp8);
    CHECK(out == in);
    std::vector<std::int64_t> expected;
    for (const QuantizeCall& call : quantize_calls(of.rank, Numel{20'000'000}, 0)) {
      std::int64_t bytes = 0;
      for (const std::uint32_t index : call.parameters) {
        const Parameter& p = of.stage->parameters[index];
        bytes += recipe == Fp8Recipe::blockwise ? p.rows / 128 * (p.columns / 128) * 4 : 4;  // all multiples of 512
      }
      expected.push_back(bytes);
    }
    CHECK(reductions == expected);
  }
}

TEST_CASE("a whole step quantises all weights at once, through bf16 copies of what is owned") {
  const Job job = recipe_job(Fp8Recipe::tensorwise, false);
  const test::RankCase of = test::rank_case("", job, 0, 0);
  const Plan plan = lower(of.rank, {});
  std::int64_t fp8 = 0;
  for (const Shard& shard : of.rank.shards) fp8 += of.stage->buffers[shard.buffer].quantized ? shard.numel.value : 0;
  std::int64_t moved = 0;
  std::int64_t copies = 0;
  int reductions = 0;
  for (const Op& op : plan.ops) {
    if (op.work == Work::all_reduce && op.phase == Phase::step) ++reductions;
    if (op.work == Work::find_largest || op.work == Work::quantize) moved += op.bytes.value;
  }
  for (const Buffer& buffer : plan.buffers)
    if (buffer.name == "bf16 masters") copies = buffer.bytes.value;
  CHECK(reductions == 1);
  CHECK(moved == 11 * fp8);  // 4 read, 2 written, 2 read; 2 read, 1 written
  CHECK(copies >= 2 * fp8);
  CHECK(static_cast<double>(copies) < 2.1 * static_cast<double>(fp8));
}

TEST_CASE("plans that quantise are safe, and none of their dependencies can be deleted unnoticed") {
  std::size_t deleted = 0;
  for (const bool experts : {false, true}) {
    for (const Fp8Recipe recipe : {Fp8Recipe::delayed, Fp8Recipe::tensorwise}) {
      const test::RankCase of = test::rank_case("", recipe_job(recipe, experts), 0, 1);
      for (const Candidate& candidate : candidates(of.rank)) {
        INFO(experts << " " << static_cast<int>(recipe) << " " << test::text_of(candidate));
        const Plan plan = lower(of.rank, candidate);
        const std::vector<Hazard> hazards = verify(plan);
        for (const Hazard& hazard : hazards) UNSCOPED_INFO(hazard.text);
        CHECK(hazards.empty());
        if (experts && candidate.policy == Policy::windowed) continue;  // verify_test.cpp: waits_for_other_manager
        for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
          for (std::uint32_t d = 0; d < plan.ops[i].deps_count; ++d) {
            const std::size_t position = plan.ops[i].deps_begin + d;
            const Plan mutant = test::without_dep(plan, position);
            INFO("op " << i << " without op " << plan.deps[position].index);
            ++deleted;
            CHECK((Order(mutant).before(plan.deps[position], {i}) || !verify(mutant).empty()));
          }
        }
      }
    }
  }
  CHECK(deleted > 500);
}

TEST_CASE("every recipe of state types lowers to a safe plan under every policy") {
  for (const bool remainders : {true, false}) {
    for (const Dtype moments : {Dtype::fp32, Dtype::bf16, Dtype::fp16, Dtype::fp8}) {
      for (const Fp8Recipe fp8 : {Fp8Recipe::none, Fp8Recipe::delayed, Fp8Recipe::mxfp8}) {
        Job job = recipe_job(fp8, false);
        job.precision.fp8_param_gather = fp8 != Fp8Recipe::none;
        job.precision.exp_avg = job.precision.exp_avg_sq = moments;
        job.precision.precision_aware = true;
        job.precision.remainders = remainders;
        job.precision.grads = Dtype::bf16;
        const test::RankCase of = test::rank_case("", job, 1, 5);
        for (const Candidate& candidate : test::candidates_for(of.rank)) {
          INFO(static_cast<int>(moments) << " " << static_cast<int>(fp8) << " " << test::text_of(candidate));
          const std::vector<Hazard> hazards = verify(lower(of.rank, candidate));
          for (const Hazard& hazard : hazards) UNSCOPED_INFO(hazard.text);
          CHECK(hazards.empty());
        }
      }
    }
  }
}

// A weight of [1024, 2048] elements.
TEST_CASE("HBM bytes of weights in forward: the column-wise copy, or both copies from bf16") {
  StageLayout stage;
  stage.parameters.push_back({.name = "w", .rows = 1024, .columns = 2048, .low_precision = true, .quantized = true});
  Parameter& weight = stage.parameters[0];
  const std::int64_t numel = 2 << 20;
  Job job = recipe_job(Fp8Recipe::blockwise, false);
  CHECK(forward_quantize_bytes(job, stage) == Bytes{2 * numel});
  job.precision.fp8 = Fp8Recipe::mxfp8;
  CHECK(forward_quantize_bytes(job, stage) == Bytes{4 * numel});
  weight.quantized = job.precision.fp8_param_gather = false;
  CHECK(forward_quantize_bytes(job, stage) == Bytes{4 * numel});
  job.precision.fp8 = Fp8Recipe::tensorwise;
  CHECK(forward_quantize_bytes(job, stage) == Bytes{6 * numel});
  weight.quantized = job.precision.fp8_param_gather = true;
  job.cluster.gpu.name = "B200";
  CHECK(forward_quantize_bytes(job, stage) == Bytes{0});
}

TEST_CASE("MXFP8 gathered without the gradient buffer runs on Ebb's own runtime alone, under every policy") {
  Job job = load_job("llama3-8b-hgx-h200");
  job.precision.fp8 = Fp8Recipe::mxfp8;
  job.precision.fp8_param_gather = true;
  CHECK(requirement_of(job.precision, Policy::chunked) == "pr6544");
  job.precision.fp8_reuse_grad_buffer = false;
  CHECK(requantizes(job.precision));
  for (const Policy policy : {Policy::resident, Policy::full_reload, Policy::chunked, Policy::windowed}) {
    CHECK(requirement_of(job.precision, policy) == "ebb");
    CHECK(violations(job, policy).empty());
  }
  const Answer answer = evaluate(job, {});
  CHECK(answer.requires_megatron == "ebb");
  CHECK_FALSE(answer.deployable);
  // A number for 32 elements of each row, then of each column.
  Parameter p;
  p.rows = 100;
  p.columns = 96;
  CHECK(largest_bytes(job.precision, p) == Bytes{4 * (100 * 3 + 4 * 96)});
}
