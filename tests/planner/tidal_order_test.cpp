// In which order a tidal step's ops are written, which is the order in which a host issues them.
#include <algorithm>

#include "planner/lower.hpp"
#include "tests/catch.hpp"
#include "tests/planner/lowering_cases.hpp"

using namespace ebb;

// A device takes some thousand commands ahead of a stream; then the host waits. On an H200 forward stood still for 85
// ms behind 434 copies that had all been issued before it. The job is the one of that run.
TEST_CASE("tidal: copies out are written beside the pieces of forward that they run with, neither early nor late") {
  const test::RankCase rank = test::rank_case("long context", load_job(EBB_SOURCE_DIR "/tests/gpu/tidal-c.yaml"));
  const Candidate candidate{.policy = Policy::tidal, .chunk_numel = {4 << 20}};
  const Plan plan = lower(rank.rank, candidate);
  const double d2h = rank.job->cluster.host_link.d2h.value.value;
  double begins = 0;  // of the copy, when the link has nothing else to do
  std::size_t copies = 0;
  std::size_t pieces = 0;
  double compute = 0;  // that has been written
  double longest = 0;  // piece
  for (const Op& op : plan.ops) {
    if (op.phase != Phase::forward) break;
    if (op.kind == OpKind::copy_d2h) {
      INFO("copy " << copies);
      CHECK(begins >= compute - longest - 1e-3);  // not after a piece that begins later
      CHECK(begins <= compute + 0.1);             // no further ahead than 110 copies
      begins += static_cast<double>(op.bytes.value) / d2h;
      ++copies;
    }
    if (op.kind == OpKind::compute) {
      compute += to_seconds(op.duration).value;
      longest = std::max(longest, to_seconds(op.duration).value);
      ++pieces;
    }
  }
  CHECK(copies == 434);
  CHECK(pieces > 20);
}
