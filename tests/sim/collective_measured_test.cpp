// CollectiveCost against NCCL measured on two H200 (tests/data/measured/README.md).
#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/collective_cost.hpp"
#include "tests/catch.hpp"
#include "tests/measured.hpp"
#include "tests/sim/collectives.hpp"

using namespace ebb;
using sim::CollectiveCost;
using test::collective;
using test::hopper;
using test::kMiB;
using test::micros;

namespace {

/// One line of tests/data/measured/h200-nccl-2gpu.jsonl and the error that is allowed: 15 % from 64 MiB, 30 % below.
struct Measurement {
  Op op;
  double micros;
  double allowed;
};

std::vector<Measurement> two_h200() {
  std::vector<Measurement> all;
  for (const auto& line : test::measured("h200-nccl-2gpu.jsonl", "nccl")) {
    const std::int64_t bytes = line.at("bytes");
    if (bytes < kMiB) continue;  // the call alone, 31 to 69 us
    const double allowed = bytes >= 64 * kMiB ? 0.15 : 0.30;
    const auto add = [&](Work work, const char* key) {
      all.push_back({collective(work, bytes, 2), line.at(key), allowed});
    };
    add(Work::all_reduce, "allreduce_us");
    add(Work::reduce_scatter, "reducescatter_us");
    // The 4 MiB all-gather took 147 us where 1 MiB took 36 and 16 MiB 57: an outlier of its run.
    if (bytes != 4 * kMiB) add(Work::all_gather, "allgather_us");
  }
  return all;
}

Cluster h200_pair(double bus, double floor_us) {
  Cluster c = hopper(bus);
  c.gpu.name = "NVIDIA H200";
  c.interconnect.collective_floor.value = {floor_us * 1e-6};
  return c;
}

/// The largest error as a part of what is allowed.
double worst(const std::vector<Measurement>& all, double bus, double floor_us) {
  const CollectiveCost cost(h200_pair(bus, floor_us));
  double worst = 0;
  for (const Measurement& m : all) {
    worst = std::max(worst, std::abs(micros(cost(m.op)) / m.micros - 1) / m.allowed);
  }
  return worst;
}

}  // namespace

TEST_CASE("collectives, measured: NCCL on two H200, with a bus rate and a floor fitted and nothing else") {
  const std::vector<Measurement> all = two_h200();
  REQUIRE(all.size() == 17);
  double best = worst(all, 250e9, 0);
  double best_bus = 0;
  double best_floor = 0;
  for (double bus = 250e9; bus <= 340e9; bus += 1e9) {
    for (double floor = 0; floor <= 60; floor += 1) {
      const double now = worst(all, bus, floor);
      if (now >= best) continue;
      best = now;
      best_bus = bus;
      best_floor = floor;
    }
  }
  // NCCL's all-reduce moves 328 GB/s at 1 GiB where its two halves move 268 and 273: the fit lies between.
  CHECK(best_bus == Approx(291e9));
  CHECK(best_floor == Approx(33));  // models/clusters/hgx-h200.yaml says so
  const CollectiveCost fitted(h200_pair(best_bus, best_floor));
  for (const Measurement& m : all) {
    CAPTURE(m.op.bytes.value, name_of(m.op.work));
    CHECK(micros(fitted(m.op)) == Approx(m.micros).epsilon(m.allowed));
  }
  // Without the floor the small ones are far off: the call itself takes longer than NCCL's tables say.
  CHECK(worst(all, best_bus, 0) > 1.5);
}
