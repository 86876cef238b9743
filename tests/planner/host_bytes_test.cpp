// Host memory of the policies against what a host's resident set grew by in measured runs.
#include <vector>

#include "tests/catch.hpp"
#include "tests/planner/lowering_cases.hpp"
#include "tests/planner/measured_steps.hpp"

using namespace ebb;

namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

}  // namespace

// Growth: resident host memory after the last step, less that of the run without offload of the same tree
// (tests/data/megatron/measured-steps.json).
TEST_CASE("host bytes match the measured growth of host memory") {
  const test::RankCase measured = test::measured_case();
  const std::vector<test::MeasuredRun> runs = test::measured_runs();
  int compared = 0;
  for (const test::MeasuredRun& run : runs) {
    if (run.candidate.policy == Policy::resident) continue;
    const double growth = run.rss.back() - test::base_of(runs, run).rss.back();
    const HostBytes host = host_bytes(measured.rank, run.candidate);
    const double predicted = static_cast<double>((host.pinned + host.pageable).value);
    INFO(run.name << ": " << predicted / kGiB << " GiB, measured " << growth / kGiB << ", off by "
                  << 100 * (predicted / growth - 1) << " %");
    CHECK(predicted == Approx(growth).epsilon(0.01));
    CHECK((host.pageable.value > 0) == (run.candidate.policy == Policy::cpu_adam));
    ++compared;
  }
  CHECK(compared == 8);
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
  CHECK(host_bytes(rank, {.policy = Policy::full_reload}).calls == 9);
  CHECK(host_bytes(rank, {.policy = Policy::windowed, .fraction = 0.5}).calls == 6);
  CHECK(host_bytes(rank, {.policy = Policy::cpu_adam}).calls == 6);
  CHECK(host_bytes(rank, {.policy = Policy::pipelined, .chunk_numel = {1}, .slots = 1}).calls == 1);
  CHECK(host_bytes(rank, {.policy = Policy::resident}).calls == 0);
  CHECK(pinned({.policy = Policy::cpu_adam}) == 2 * one_state);  // masters and gradients
  CHECK(host_bytes(rank, {.policy = Policy::cpu_adam}).pageable.value == 2050 * 8);
  CHECK(pinned({.policy = Policy::pipelined, .chunk_numel = {1}, .slots = 1}) == 2050 * 12);

  // bf16 moments: Transformer Engine's optimizer holds the masters, as int16 remainders unless told otherwise.
  measured.job->precision.exp_avg = measured.job->precision.exp_avg_sq = Dtype::bf16;
  CHECK(pinned({.policy = Policy::windowed}) == 3 * (2 + 2048 + 4096));
  CHECK(pinned({.policy = Policy::pipelined, .chunk_numel = {1}, .slots = 1}) == 2050 * 6);
  measured.job->precision.remainders = false;
  CHECK(pinned({.policy = Policy::chunked, .chunk_numel = {1}}) == one_state + 2 * (2 + 2048 + 4096));
  CHECK(pinned({.policy = Policy::pipelined, .chunk_numel = {1}, .slots = 1}) == 2050 * 8);
}
