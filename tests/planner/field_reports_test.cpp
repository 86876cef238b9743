// Public reports of what host and device memory really took, against what Ebb says for the same sizes. Each case names
// its report; figures are the reports' own, in their units. Reports about single pinned blocks and about what hosts
// refuse are in tests/sim/pinned_memory_test.cpp too; those about the load, the init and the save of a job belong to
// the phases' tests.
#include <algorithm>
#include <string>
#include <vector>

#include "planner/constraints.hpp"
#include "planner/host_parts.hpp"
#include "planner/rules.hpp"
#include "planner/search.hpp"
#include "planner/verify.hpp"
#include "sim/pinned_memory.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/planner/lowering_cases.hpp"
#include "tests/planner/test_job.hpp"

using namespace ebb;

namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

double gib(Bytes bytes) { return static_cast<double>(bytes.value) / kGiB; }
double gb(Bytes bytes) { return static_cast<double>(bytes.value) / 1e9; }

/// A rank whose optimizer owns shards of these sizes, whatever its model: what a policy moves and holds depends on them
/// and on the dtypes alone.
test::RankCase rank_of(std::size_t shards, Numel each, const Precision& precision = {}) {
  test::RankCase made = test::measured_case();
  made.job->precision = precision;
  RankModel& rank = made.rank;
  const Shard first = rank.shards.front();
  rank.shards.assign(shards, first);
  for (Shard& shard : rank.shards) shard.numel = each;
  rank.owned = owned(rank.shards);
  return made;
}

/// Bytes that the steady step copies in one direction.
Bytes copied(const Plan& plan, OpKind direction) {
  Bytes sum{0};
  for (const Op& op : plan.ops)
    if (op.kind == direction) sum += op.bytes;
  return sum;
}

Bytes pinned(const test::RankCase& made, const Candidate& candidate) { return host_bytes(made.rank, candidate).pinned; }

/// One copy of `bytes` in `calls` pieces, nothing else under way.
Seconds copy_alone(const Cluster& cluster, OpKind direction, Bytes bytes, std::uint32_t calls, Memory host) {
  Plan plan;
  plan.streams = {{"copies", direction == OpKind::copy_h2d ? StreamKind::h2d : StreamKind::d2h}};
  Op copy;
  copy.kind = direction;
  copy.stream = StreamId{0};
  copy.bytes = bytes;
  copy.calls = calls;
  copy.host = host;
  plan.ops = {copy};
  return to_seconds(sim::simulate(plan, cluster, {}).end[0]);
}

constexpr Candidate kReload{.policy = Policy::full_reload};
constexpr Candidate kExact{.policy = Policy::pipelined, .chunk_numel = {1 << 22}, .slots = 2};
constexpr Candidate kCpuAdam{.policy = Policy::cpu_adam};

}  // namespace

// 1: https://github.com/vllm-project/vllm/issues/53042: on each of four ranks 24 pinned tensors of 2,236,817,408 B; 200
// GiB asked, 384 GiB held. Here: eight fp32 shards of three states each.
TEST_CASE("report 1: 200 GiB of state hold 384 GiB") {
  const test::RankCase made = rank_of(8, {2'236'817'408 / 4});
  CHECK(host_bytes(made.rank, kReload).calls == 24);
  CHECK(gib(pinned(made, kReload) * 4) == 384.0);
  CHECK(gib(pinned(made, kExact) * 4) == Approx(199.99).margin(0.01));
}

// 2: https://github.com/pytorch/pytorch/issues/95823: 4,347,592,704 fp16 elements, 8,292.4 MiB, took 16,384 MiB.
// 3: https://github.com/vllm-project/vllm/pull/48436: 40 GiB took 64, 32 took 32.
// 12: https://github.com/deepspeedai/DeepSpeed/issues/7150: one fp32 tensor of 1,776,255,488 elements asks for 6.62
// GiB.
TEST_CASE("reports 2, 3 and 12: one tensor's pinned block is the next power of two") {
  Precision fp16;
  fp16.exp_avg = fp16.exp_avg_sq = fp16.master = Dtype::fp16;
  const test::RankCase halves = rank_of(1, {4'347'592'704}, fp16);
  CHECK(gib(pinned(halves, kReload)) * 1024 / 3 == 16'384);
  CHECK(gib(pinned(halves, kExact)) * 1024 / 3 == Approx(8'292.4).margin(0.05));
  CHECK(gib(pinned(rank_of(1, {10LL << 30}), kReload)) / 3 == 64);
  CHECK(gib(pinned(rank_of(1, {8LL << 30}), kReload)) / 3 == 32);
  const test::RankCase single = rank_of(1, {1'776'255'488});
  CHECK(gib(pinned(single, kExact)) / 3 == Approx(6.62).margin(0.005));
  CHECK(gib(pinned(single, kReload)) / 3 == 8);
}

// 6: https://github.com/sgl-project/sglang/pull/39021: 34 tensors of 1.20 GiB, 40.9 GiB planned, about 68 locked on a
// host of 60 GB: killed. Here: the masters and gradients of a host Adam over 17 shards.
TEST_CASE("report 6: what fits as asked and not as held is refused") {
  const test::RankCase made = rank_of(17, {static_cast<std::int64_t>(0.3 * kGiB)});
  const HostParts parts = host_parts(made.rank, kCpuAdam);
  CHECK(gib(parts.masters.asked + parts.grads.asked) == Approx(40.9).margin(0.15));
  CHECK(gib(pinned(made, kCpuAdam)) == 68);
  Job host = *made.job;
  host.cluster.host.memory.value = Bytes{60'000'000'000};
  sim::PinnedLayout all = parts.masters;
  all += parts.grads;
  CHECK(sim::pinned_limits(std::vector{all}, host.cluster, {}).size() == 1);
  sim::PinnedLayout exact;
  exact.add(all.asked, sim::PinnedRounding::exact);
  CHECK(sim::pinned_limits(std::vector{exact}, host.cluster, {}).empty());
}

// 8: https://github.com/xcena-dev/maru/pull/64: one registration of 510 GiB passes, 512 GiB and more fail. Here: the
// one region of Ebb's own runtime.
TEST_CASE("report 8: one region of 520 GiB must be split, 510 need not") {
  const auto limits = [](std::int64_t region_gib) {
    const test::RankCase made = rank_of(1, {(region_gib << 30) / 12});
    Cluster cluster = made.job->cluster;
    cluster.host.memory.value = 2048_GiB;
    return sim::pinned_limits(std::vector{host_parts(made.rank, kExact).region}, cluster, {});
  };
  CHECK(limits(510).empty());
  REQUIRE(limits(520).size() == 1);
  CHECK(limits(520)[0].find("split it into smaller blocks") != std::string::npos);
}

// 14: https://github.com/radixark/Megatron-LM/pull/63: 744e9 parameters on 32 GB300: 12 B each are 279 GB a rank, more
// than the 276.6 GB of device memory, before any weight.
TEST_CASE("report 14: the state of 744e9 parameters does not fit 32 GPUs") {
  const test::RankCase made = rank_of(1000, {744'000'000'000 / 32 / 1000});
  CHECK(gb(pinned(made, kExact)) == Approx(279.0).margin(0.05));
  const Plan resident = lower(made.rank, {});
  Bytes state{0};
  for (const Buffer& buffer : resident.buffers)
    if (buffer.role == Role::state) state += buffer.bytes;
  CHECK(gb(state) > 276.6);
  CHECK_FALSE(verify(resident, Bytes{276'600'000'000}).empty());
}

// 15: the same: of 46.1 GB of state a rank, fp32 moves all, bf16 moments leave 30.8 and fp8 23.1; the first step reads
// the masters only, 15.4, and all is on the host after it.
TEST_CASE("report 15: bytes moved by the moments' dtype") {
  const auto made = [](Dtype moments) {
    Precision precision;
    precision.exp_avg = precision.exp_avg_sq = moments;
    precision.remainders = false;  // whole fp32 masters, as the report's
    return rank_of(100, {static_cast<std::int64_t>(46.1e9 / 12 / 100)}, precision);
  };
  for (const auto& [moments, expected] :
       {std::pair{Dtype::fp32, 46.1}, std::pair{Dtype::bf16, 30.8}, std::pair{Dtype::fp8, 23.1}}) {
    INFO(name_of(moments));
    const test::RankCase rank = made(moments);
    const Plan plan = lower(rank.rank, kReload);
    CHECK(gb(copied(plan, OpKind::copy_h2d)) == Approx(expected).margin(0.1));
    CHECK(gb(copied(plan, OpKind::copy_d2h)) == Approx(expected).margin(0.1));
  }
  const test::RankCase rank = made(Dtype::fp32);
  const HostParts parts = host_parts(rank.rank, kReload);
  CHECK(gb(parts.masters.asked) == Approx(15.4).margin(0.05));
  CHECK(gb(parts.masters.asked + parts.moments.asked) == Approx(46.1).margin(0.05));
}

// 16: https://github.com/PrimeIntellect-ai/prime-rl/pull/3200: 744e9 parameters on four hosts of eight GPUs: a set of
// fp32 gradients more is about 700 GiB a host.
TEST_CASE("report 16: a set of fp32 gradients of 744e9 parameters is 693 GiB on each of four hosts") {
  const test::RankCase made = rank_of(1000, {744'000'000'000 / 32 / 1000});
  CHECK(gib(host_parts(made.rank, kCpuAdam).grads.asked * 8) == Approx(692.9).margin(0.05));
}

// 20: https://github.com/ISEEKYAN/Megatron-LM/pull/148: a trailing shard of no elements crashed the step with
// everything offloaded.
TEST_CASE("report 20: a shard of no elements is packed and pinned as nothing") {
  test::RankCase made = rank_of(3, {1000});
  made.rank.shards.back().numel = {0};
  made.rank.owned = owned(made.rank.shards);
  CHECK(host_bytes(made.rank, kCpuAdam).calls == 4);  // masters and gradients of the other two
  for (const Policy policy : {Policy::full_reload, Policy::chunked, Policy::windowed, Policy::cpu_adam})
    CHECK(verify(lower(made.rank, {.policy = policy, .chunk_numel = {1500}})).empty());
}

// 25: https://github.com/THUDM/slime/issues/1851: Qwen3-30B-A3B on eight H100 with --optimizer-cpu-offload held about
// 102.5 GB an actor, its weight copies and runtime included; 16 B a parameter alone are 61 GB.
TEST_CASE("report 25: a host Adam holds at least 16 B a parameter") {
  Job job = load_job("qwen3-30b-a3b-hgx-h100");
  job.parallel.gpus = 8;
  Bytes sum{0};
  for (std::int64_t rank = 0; rank < 8; ++rank) {
    const StageLayout stage = stage_layout(job, 0);
    const HostBytes host = host_bytes(rank_model(job, stage, rank), kCpuAdam);
    INFO(rank << ": " << gb(host.pinned + host.pageable));
    CHECK(gb(host.pinned + host.pageable) > 61);
    CHECK(gb(host.pinned + host.pageable) < 102.5);
    sum += host.pinned + host.pageable;
  }
  CHECK(gb(sum) > 16 * 30.5);
}

// 32: https://github.com/deepspeedai/DeepSpeed/issues/4867: 15.5e9 parameters with the optimizer on a host of 256 GB:
// an estimate of 346 GB, and the run was killed. Here: 15.6e9 parameters on eight ranks of such a host.
TEST_CASE("report 32: a host Adam over 15.5e9 parameters does not fit 256 GB") {
  Job job = load_job("nemotron4-15b-hgx-h100");
  job.budget.host.reset();
  job.cluster.host.memory.value = Bytes{256'000'000'000};
  const Answer answer = evaluate(job, kCpuAdam);
  INFO(gib(answer.host_pinned_per_host + answer.host_pageable_per_host));
  CHECK_FALSE(answer.fits_host);
  CHECK(gb(answer.host_pinned_per_host + answer.host_pageable_per_host) >= 16 * 15.5);
  CHECK(answer.reason.find("host") != std::string::npos);
}

// 38: https://github.com/radixark/Megatron-LM/pull/67: Qwen3-0.6B on two GPUs, fp16 moments asked of the hybrid
// optimizer: 298,024,960 elements a rank stay fp32, 1,192,099,840 B a category and not 596,049,920.
TEST_CASE("report 38: a host Adam keeps fp32 moments whatever was asked, and the mismatch is told") {
  Precision asked;
  asked.exp_avg = asked.exp_avg_sq = Dtype::fp16;
  const test::RankCase made = rank_of(1, {298'024'960}, asked);
  const HostParts parts = host_parts(made.rank, kReload);  // a policy that honours the dtypes
  CHECK(parts.moments.asked == Bytes{596'049'920} * 2);
  CHECK(host_bytes(made.rank, kCpuAdam).pageable == Bytes{1'192'099'840} * 2);
  const std::vector<Violation> told = objections(*made.job, Policy::cpu_adam);
  REQUIRE(told.size() == 1);
  CHECK(told[0].rule->id == "cpu-adam-fp32-state");
  CHECK(told[0].key == "precision.exp_avg");
}

// 41: https://github.com/NVIDIA/Megatron-LM/pull/6244, review: fp8 moments lose their quantiser, fp16 moments meet a
// scale on the other device.
TEST_CASE("report 41: scaled moments are refused by every policy that moves them") {
  for (const Dtype moments : {Dtype::fp8, Dtype::fp16}) {
    Job job = test::small_job();
    job.precision.exp_avg = job.precision.exp_avg_sq = moments;
    for (const Policy policy : {Policy::full_reload, Policy::chunked, Policy::windowed}) {
      INFO(name_of(moments) << " " << name_of(policy));
      CHECK(objection_to(job, {.policy = policy}).find("fp32 or bf16 moments only") != std::string::npos);
      CHECK_THROWS_AS(check_policy(job, policy), InputError);
    }
  }
}

// 50: https://github.com/PrimeIntellect-ai/prime-rl/pull/3258: the moments of 30.53e9 parameters on eight GPUs, 28.4
// GiB a rank each way; the transfers cost 1.1 to 1.4 s of a step. The moments of a host link's full reload, both ways.
TEST_CASE("report 50: moments of 30.5e9 parameters on eight GPUs cost 28.4 GiB and about 1.1 s a step") {
  test::RankCase made = rank_of(1000, {30'530'000'000 / 8 / 1000});
  const HostParts parts = host_parts(made.rank, kReload);
  CHECK(gib(parts.moments.asked) == Approx(28.4).margin(0.05));
  const Cluster cluster = load_job("llama3-8b-hgx-h200").cluster;
  const auto calls = static_cast<std::uint32_t>(2 * made.rank.shards.size());
  const double both_ways = copy_alone(cluster, OpKind::copy_h2d, parts.moments.asked, calls, Memory::pinned).value +
                           copy_alone(cluster, OpKind::copy_d2h, parts.moments.asked, calls, Memory::pinned).value;
  CHECK(both_ways > 1.1 * 0.75);
  CHECK(both_ways < 1.4 * 1.25);
}

// 52: https://github.com/NVIDIA-NeMo/RL/issues/3976: 4.94 GB in 510 copies from one H100 took 2.75 s to memory that is
// not pinned, tensor by tensor; one block would take 0.31 s there (16.1 GB/s on that host), and pinned memory 0.09 s.
TEST_CASE("report 52: pinned memory takes 4.94 GB in 0.09 s, memory that is not pinned 0.31 s") {
  Cluster cluster = load_job("qwen3-30b-a3b-hgx-h100").cluster;
  cluster.host_link.pageable_d2h.value = {16.1e9};
  const Bytes state{4'940'000'000};
  CHECK(copy_alone(cluster, OpKind::copy_d2h, state, 510, Memory::pinned).value == Approx(0.09).epsilon(0.25));
  CHECK(copy_alone(cluster, OpKind::copy_d2h, state, 1, Memory::pageable).value == Approx(0.31).epsilon(0.25));
}

// 53: https://github.com/pytorch/pytorch/pull/186161: 155 tensors pinned anew in every step, 3 ms each, cost 465 ms.
TEST_CASE("report 53: 155 pinned blocks of 3 ms are 465 ms") {
  const test::RankCase made = rank_of(155, {4096});
  Host host;
  host.pin_call.value = Seconds{3e-3};
  CHECK(sim::pin_time(host_parts(made.rank, kCpuAdam).masters, host).value == Approx(0.465));
}

// 60: https://github.com/radixark/miles/pull/2739: the chunk size was left at its default 0, and no peak was saved.
TEST_CASE("report 60: a chunk size of 0 is refused as unbounded, and full-reload shows the full state's peak") {
  CandidateRequest request;
  request.policy = Policy::chunked;
  request.chunk_numel = Numel{0};
  const auto problem = problem_of(request);
  REQUIRE(problem);
  CHECK(problem->cure.find("full-reload is the policy without chunks") != std::string::npos);
  const test::RankCase made = test::measured_case();
  const auto in_step = [&](const Candidate& candidate) {
    for (const PhaseAnswer& phase : evaluate(*made.job, candidate).phases)
      if (phase.phase == Phase::step) return gb(phase.device_peak);
    return 0.0;
  };
  const double resident = in_step({});
  CHECK(in_step(kReload) == Approx(resident).epsilon(0.02));
  CHECK(in_step({.policy = Policy::chunked, .chunk_numel = {1}}) <
        resident - 0.9 * 12 * (static_cast<double>(made.rank.owned.value) - 103'022'592) / 1e9);
}
