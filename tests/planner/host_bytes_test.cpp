// Host memory of the policies against what a host's resident set grew by in measured runs.
#include <vector>

#include "tests/catch.hpp"
#include "tests/planner/lowering_cases.hpp"

using namespace ebb;

namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

double gib(Bytes bytes) { return static_cast<double>(bytes.value) / kGiB; }

}  // namespace

// Measured: Megatron-LM with 1,816,758,272 parameters on one H200, torch 2.11, 2026-11-30: 22.1 GiB of growth above the
// run without offload for state offload, 28.1 for CPU Adam (of which the host's Adam uses some for itself).
TEST_CASE("pinned bytes match the measured growth of host memory") {
  const test::RankCase measured = test::measured_case();
  for (const Candidate& candidate :
       {Candidate{.policy = Policy::full_reload}, Candidate{.policy = Policy::chunked, .chunk_numel = {100'000'000}},
        Candidate{.policy = Policy::windowed, .chunk_size_mb = 512}}) {
    const HostBytes host = host_bytes(measured.rank, candidate);
    CHECK(gib(host.pinned) == Approx(22.1).margin(0.05));
    CHECK(host.pageable.value == 0);
  }
  const HostBytes hybrid = host_bytes(measured.rank, {.policy = Policy::cpu_adam});
  CHECK(gib(hybrid.pinned + hybrid.pageable) == Approx(28.1).epsilon(0.01));
}

// By hand: three shards of 1, 1024 and 1025 elements. A pinned tensor is rounded up to a power of two.
TEST_CASE("pinned tensors are rounded up to powers of two, one a shard and state") {
  test::RankCase measured = test::measured_case();
  RankModel& rank = measured.rank;
  rank.shards.resize(3);
  rank.shards[0].numel = {1};
  rank.shards[1].numel = {1024};
  rank.shards[2].numel = {1025};
  rank.owned = owned(rank.shards);
  const auto pinned = [&](const Candidate& candidate) { return host_bytes(rank, candidate).pinned.value; };

  const std::int64_t one_state = 4 + 4096 + 8192;
  CHECK(pinned({.policy = Policy::resident}) == 0);
  CHECK(pinned({.policy = Policy::full_reload}) == 3 * one_state);
  CHECK(pinned({.policy = Policy::chunked, .chunk_numel = {1}}) == 3 * one_state);
  CHECK(pinned({.policy = Policy::windowed}) == 3 * one_state);
  CHECK(pinned({.policy = Policy::windowed, .fraction = 0.51}) == 3 * one_state);  // 1 + 1024 are half, not more
  CHECK(pinned({.policy = Policy::windowed, .fraction = 0.5}) == 3 * (4 + 4096));
  CHECK(pinned({.policy = Policy::cpu_adam}) == 2 * one_state);  // masters and gradients
  CHECK(host_bytes(rank, {.policy = Policy::cpu_adam}).pageable.value == 2050 * 8);
  CHECK(pinned({.policy = Policy::pipelined, .chunk_numel = {1}, .slots = 1}) == 2050 * 12);

  measured.job->precision.exp_avg = measured.job->precision.exp_avg_sq = Dtype::bf16;
  CHECK(pinned({.policy = Policy::chunked, .chunk_numel = {1}}) == one_state + 2 * (2 + 2048 + 4096));
  CHECK(pinned({.policy = Policy::pipelined, .chunk_numel = {1}, .slots = 1}) == 2050 * 8);
}
