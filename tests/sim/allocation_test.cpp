// A Simulator allocates nothing when it runs a plan again: counted by replacing operator new in this binary. Not under
// sanitizers, which replace it themselves.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "models/timeline.hpp"
#include "sim/simulator.hpp"
#include "tests/catch.hpp"
#include "tests/sim/plan_builder.hpp"

namespace {
std::atomic<long> allocations{0};
std::atomic<long> allocated_bytes{0};
}  // namespace

void* operator new(std::size_t bytes) {
  ++allocations;
  allocated_bytes += static_cast<long>(bytes);
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

TEST_CASE("simulate: 24 bytes of state an op, the timeline's 16 included, on one GPU and on each of eight") {
  constexpr std::int64_t kChunks = 10'000;
  std::vector<Plan> plans;
  for (std::int64_t gpu = 0; gpu < 8; ++gpu) plans.push_back(test::chunked_step(kChunks << 20, 1 << 20, 2));
  const auto ops = static_cast<double>(plans[0].ops.size());
  const Cluster cluster = test::h200_host();
  {
    sim::Simulator simulator;
    Timeline timeline;
    const long before = allocated_bytes;
    simulator.run(plans[0], cluster, {}, timeline);
    const double each = static_cast<double>(allocated_bytes - before) / ops;
    CHECK(each >= 24);
    CHECK(each < 26);  // beside what does not grow with the plan
  }
  sim::HostRuns host;
  for (std::uint32_t gpu = 0; gpu < plans.size(); ++gpu) {
    host.plans.push_back(&plans[gpu]);
    host.class_of_place.push_back(gpu);
  }
  sim::Simulator simulator;
  std::vector<Timeline> timelines;
  const long before = allocated_bytes;
  simulator.run(host, cluster, timelines);
  constexpr long kRates = 1 << 20;  // remembered, whatever the plan
  CHECK(static_cast<double>(allocated_bytes - before - kRates) / (8 * ops) < 26);
}

#endif
