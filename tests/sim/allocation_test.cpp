// A Simulator allocates nothing when it runs a plan again: counted by replacing operator new in this binary. Not under
// sanitizers, which replace it themselves.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include <atomic>
#include <cstdlib>
#include <new>

#include "models/timeline.hpp"
#include "sim/simulator.hpp"
#include "tests/catch.hpp"
#include "tests/sim/plan_builder.hpp"

namespace {
std::atomic<long> allocations{0};
}

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

using namespace ebb;

TEST_CASE("simulate: a second run allocates nothing, nor does the summary") {
  const Plan plan = test::chunked_step(1 << 28, 1 << 20, 2);
  const Plan smaller = test::chunked_step(1 << 26, 1 << 20, 3);
  const Cluster cluster = test::h200_host();
  sim::Simulator simulator;
  Timeline timeline;
  std::vector<MemoryEvent> scratch;
  StepSummary summary;
  const auto run = [&](const Plan& p) {
    simulator.run(p, cluster, {}, timeline);
    summarize(p, timeline, scratch, summary);
  };
  const long before_first = allocations;
  run(plan);
  const long before_second = allocations;
  REQUIRE(before_second > before_first);  // the counter counts
  run(plan);
  run(smaller);
  REQUIRE(allocations == before_second);
}

#endif
