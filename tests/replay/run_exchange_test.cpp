// What one process sends of its run arrives bit for bit.
#include "replay/run_exchange.hpp"

#include <cmath>
#include <limits>

#include "tests/catch.hpp"

using namespace ebb;
using namespace ebb::replay;

TEST_CASE("a rank's run survives the way through text: numbers to the bit, timeline and memory") {
  RankRun run;
  run.timeline.rank = 11;
  run.timeline.ops.push_back({.kind = OpKind::copy_h2d,
                              .phase = Phase::step,
                              .stream = StreamKind::h2d,
                              .chunk = 3,
                              .calls = 7,
                              .bytes = {1'000'000'007},
                              .start = {123'456'789'012},
                              .end = {223'456'789'013}});
  run.timeline.steps = {{5'000'000'000'001}, {5'000'000'000'003}};
  run.timeline.updates = {{1}, {2}};
  run.timeline.memory.live_peak = {777};
  run.timeline.memory.torch_reserved_peak = Bytes{2 << 20};
  run.numbers.steps = {{.loss = 0.1, .sum_of_squares = 0.3F, .digest = 0xfedcba9876543210U},
                       {.loss = -0.0, .sum_of_squares = std::numeric_limits<float>::infinity(), .digest = 0}};
  run.numbers.final_state = 0xffffffffffffffffU;
  run.numbers.peak_live = {777};

  const RankRun back = rank_run_from_text(to_text(run));
  CHECK(back.timeline == run.timeline);
  CHECK(back.numbers.steps == run.numbers.steps);
  CHECK(std::signbit(back.numbers.steps[1].loss));
  CHECK(back.numbers.final_state == run.numbers.final_state);
  CHECK(back.numbers.peak_live == run.numbers.peak_live);
}
