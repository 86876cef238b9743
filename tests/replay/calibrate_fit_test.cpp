// Fits find known constants, with noise as well, and mean what the simulator means by them.
#include "replay/calibrate_fit.hpp"

#include <array>

#include "models/cluster_yaml.hpp"
#include "models/library.hpp"
#include "sim/collective_cost.hpp"
#include "sim/fabric.hpp"
#include "tests/catch.hpp"
#include "tests/replay/calibration_of.hpp"

using namespace ebb;
using namespace ebb::replay;

namespace {

Cluster h200() { return load_cluster(library_path(Library::clusters, "h200-1gpu")); }

bool near(double value, double expected, double relative) {
  return std::abs(value - expected) <= relative * std::abs(expected);
}

}  // namespace

TEST_CASE("fit of a link: exact without noise, within the noise with it") {
  Cluster c = h200();
  c.host_link.h2d.value = {53.1e9};
  c.host_link.d2h.value = {55.9e9};
  c.host_link.latency.value = {2.3e-6};
  const LinkFit exact = fit_link(test::calibration_of(c, 0).copies);
  CHECK(near(exact.h2d.value, 53.1e9, 1e-9));
  CHECK(near(exact.d2h.value, 55.9e9, 1e-9));
  CHECK(near(exact.latency.value, 2.3e-6, 1e-9));
  CHECK(exact.residual.worst < 1e-9);

  const LinkFit noisy = fit_link(test::calibration_of(c, 0.01).copies);
  CHECK(near(noisy.h2d.value, 53.1e9, 0.01));
  CHECK(near(noisy.d2h.value, 55.9e9, 0.01));
  CHECK(near(noisy.latency.value, 2.3e-6, 0.02));
  CHECK(noisy.residual.worst > 1e-4);
  CHECK(noisy.residual.worst < 0.02);
}

TEST_CASE("fit of a link: a latency that noise makes negative is 0") {
  std::vector<CopyTime> copies;
  for (const bool to_device : {true, false}) {
    copies.push_back({.to_device = to_device, .bytes = 1_MiB, .calls = 1, .all = {.median = 1.0}});
    copies.push_back({.to_device = to_device, .bytes = 2_MiB, .calls = 1, .all = {.median = 2.5}});
  }
  const LinkFit fit = fit_link(copies);
  CHECK(fit.latency.value == 0);
  CHECK(fit.h2d.value > 0);
}

TEST_CASE("fit of both directions: rates by size and the weight") {
  Cluster c = h200();
  c.host_link.d2h_weight.value = 1.15;
  const CalibrationData data = test::calibration_of(c, 0);
  const LinkFit link = fit_link(data.copies);
  const auto both = fit_both(data.flows, link, 4_MiB);
  REQUIRE(both);
  REQUIRE(both->by_size.size() == c.host_link.both_by_size.value.size());
  for (std::size_t i = 0; i < both->by_size.size(); ++i) {
    CHECK(both->by_size[i].bytes == c.host_link.both_by_size.value[i].bytes);
    CHECK(near(both->by_size[i].rate.value, c.host_link.both_by_size.value[i].rate.value, 1e-6));
  }
  CHECK(near(both->d2h_weight, 1.15, 1e-6));
  CHECK(both->residual.worst < 1e-6);
  CHECK_FALSE(fit_both({}, link, 4_MiB));
}

TEST_CASE("fit of both directions: sums never exceed the two directions alone") {
  const CalibrationData data = test::calibration_of(h200(), 0);
  LinkFit slow = fit_link(data.copies);
  slow.h2d = slow.d2h = {40e9};
  const auto both = fit_both(data.flows, slow, 4_MiB);
  REQUIRE(both);
  for (const SizedRate& size : both->by_size) CHECK(size.rate.value <= 80e9);
}

TEST_CASE("steady rates are the simulator's: weighted max-min over the link's three limits") {
  for (const double weight : {1.0, 1.15, 1.6, 0.7}) {
    Cluster c = h200();
    c.host_link.d2h_weight.value = weight;
    c.host_link.host_both.value = {1e12};
    LinkFit link{.latency = {0}, .h2d = c.host_link.h2d.value, .d2h = c.host_link.d2h.value, .residual = {}};
    BothFit both;
    both.by_size = c.host_link.both_by_size.value;
    both.both = c.host_link.both.value;
    both.d2h_weight = weight;
    sim::Fabric fabric;
    const std::array<std::uint32_t, 1> places = {0};
    fabric.build(c, places, 1, {});
    for (const Bytes bytes : {1_MiB, 16_MiB, 48_MiB, 64_MiB, 300_MiB, 4_GiB}) {
      const std::array<sim::FlowId, 3> flows = {fabric.copy_flow(0, sim::Direction::h2d, Memory::pinned, bytes),
                                                fabric.copy_flow(0, sim::Direction::d2h, Memory::pinned, bytes),
                                                sim::kNoFlow};
      std::array<double, 3> rates{};
      fabric.solve(0, flows, rates);
      const Steady steady = steady_rates(link, both, bytes);
      INFO(weight << " " << bytes.value);
      CHECK(near(steady.h2d, rates[0] * 1e12, 1e-9));
      CHECK(near(steady.d2h, rates[1] * 1e12, 1e-9));
    }
  }
}

TEST_CASE("fit of all GPUs at once: sums over GPUs, repeats averaged") {
  std::vector<FlowTime> flows;
  for (const std::int64_t gpu : {0, 1}) {
    flows.push_back({gpu, 2, 16_MiB, 2, 100e9, 0});
    flows.push_back({gpu, 2, 16_MiB, 1, 0, 52e9});
    for (int repeat = 0; repeat < 2; ++repeat) flows.push_back({gpu, 2, 16_MiB, 1, 30e9 + 1e9 * repeat, 38e9});
    flows.push_back({gpu, 2, 64_MiB, 1, 30e9, 35e9});
    flows.push_back({gpu, 1, 64_MiB, 1, 48e9, 50e9});  // alone: not of this
  }
  const auto host = fit_host(flows, 2);
  REQUIRE(host);
  CHECK(near(host->one_way.value, 100e9, 1e-12));
  CHECK(near(host->both.value, 137e9, 1e-12));
  CHECK_FALSE(fit_host(flows, 4));
}

TEST_CASE("fit of kernels: rate and floor") {
  Cluster c = h200();
  c.gpu.kernel_floor.value = {2e-6};
  const CalibrationData data = test::calibration_of(c, 0);
  constexpr std::array<std::string_view, 1> kAdam = {"adam"};
  constexpr std::array<std::string_view, 1> kZero = {"zero"};
  constexpr std::array<std::string_view, 1> kNone = {"none"};
  const auto adam = fit_kernels(data.kernels, kAdam);
  REQUIRE(adam);
  CHECK(near(adam->rate.value, 3.35e12, 1e-9));
  CHECK(near(adam->floor.value, 2e-6, 1e-6));
  const auto zero = fit_kernels(data.kernels, kZero);
  REQUIRE(zero);
  CHECK(zero->floor.value == 0);
  CHECK(near(zero->rate.value, 4.26e12, 1e-9));
  CHECK_FALSE(fit_kernels(data.kernels, kNone));
}

TEST_CASE("fit of the bus is the simulator's cost of large collectives turned round") {
  for (const std::int64_t gpus : {2, 4, 8}) {
    Cluster c = load_cluster(library_path(Library::clusters, "hgx-h200"));
    c.interconnect.nvlink.value = {291e9};
    c.interconnect.collective_floor.value = {60e-6};  // above all of NCCL's latencies for 8 members
    const sim::CollectiveCost cost(c);
    std::vector<CollectiveRun> runs;
    for (const Work work : {Work::all_gather, Work::reduce_scatter, Work::all_reduce})
      for (const Bytes bytes : {64_MiB, 256_MiB, 1_GiB}) {
        const Op op{.kind = OpKind::collective,
                    .work = work,
                    .members = static_cast<decltype(Op::members)>(gpus),
                    .bytes = bytes};
        runs.push_back({.work = work,
                        .members = gpus,
                        .bytes = bytes,
                        .link_use = 0,
                        .each = {.median = cost(op).ticks() * 1e-12}});
      }
    const auto bus = fit_bus(runs, 4_MiB);
    REQUIRE(bus);
    INFO(gpus);
    CHECK(near(bus->bus.value, 291e9, 1e-6));
    CHECK(near(bus->floor.value, 60e-6, 1e-4));
    CHECK(bus->residual.worst < 1e-6);
    // Half of the link in use takes a tenth of the rate: interference 0.2.
    CollectiveRun beside = runs[1];
    beside.link_use = 0.5;
    beside.each.median = 60e-6 + (runs[1].each.median - 60e-6) / 0.9;
    runs.push_back(beside);
    CHECK(near(*fit_interference(runs, bus->floor), 0.2, 1e-3));
    CHECK(near(fit_bus(runs, 4_MiB)->bus.value, 291e9, 1e-6));
  }
}

TEST_CASE("bytes moved by a time are linear between marks") {
  const std::vector<double> times = {1, 2, 4};
  CHECK(moved_by(times, 10, 1) == 10);
  CHECK(moved_by(times, 10, 1.5) == 15);
  CHECK(moved_by(times, 10, 2) == 20);
  CHECK(moved_by(times, 10, 3) == 25);
  CHECK(moved_by(times, 10, 4) == 30);
}
