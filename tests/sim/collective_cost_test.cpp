// CollectiveCost: NCCL's model against numbers worked out from its tables by hand.
#include "sim/collective_cost.hpp"

#include <vector>

#include "tests/catch.hpp"
#include "tests/sim/collectives.hpp"

using namespace ebb;
using sim::Algorithm;
using sim::CollectiveCost;
using sim::CollectiveTime;
using sim::Protocol;
using test::collective;
using test::hopper;
using test::kGiB;
using test::kMiB;
using test::micros;

namespace {

double latency(const CollectiveTime& t) { return t.latency_ticks / 1e6; }

}  // namespace

TEST_CASE("collectives: eight H100 at 360 GB/s, as NCCL's tables say") {
  const CollectiveCost cost(hopper());
  const CollectiveTime gather = cost(collective(Work::all_gather, kGiB, 8));
  CHECK(gather.algorithm == Algorithm::ring);
  CHECK(gather.protocol == Protocol::simple);
  CHECK(latency(gather) == Approx(32.2));  // 8.4 + 7 * 3.4
  CHECK(micros(gather) == Approx(2642).epsilon(2e-4));
  CHECK(micros(cost(collective(Work::reduce_scatter, kGiB, 8))) == micros(gather));
  CHECK(micros(cost(collective(Work::all_reduce, kGiB, 8))) == Approx(5276).epsilon(2e-4));
  // 1 MiB: LL is less than half as long as the Simple ring, and chosen.
  const Op small = collective(Work::all_reduce, kMiB, 8);
  CHECK(micros(cost.with(small, Algorithm::ring, Protocol::simple)) == Approx(61.1).epsilon(1e-3));
  CHECK(micros(cost.with(small, Algorithm::ring, Protocol::ll128)) == Approx(40.6 + 5.54).epsilon(1e-3));
  CHECK(micros(cost.with(small, Algorithm::tree, Protocol::ll)) == Approx(15.2 + 48.1).epsilon(1e-3));
  CHECK(micros(cost(small)) == Approx(28.0).epsilon(1e-3));
  CHECK(cost(small).protocol == Protocol::ll);
  CHECK(cost(small).algorithm == Algorithm::ring);
}

TEST_CASE("collectives: two H100 at 360 GB/s") {
  const CollectiveTime gather = CollectiveCost(hopper())(collective(Work::all_gather, kGiB, 2));
  CHECK(latency(gather) == Approx(11.8));
  CHECK(micros(gather) == Approx(1503).epsilon(2e-4));
}

TEST_CASE("collectives: one member needs nothing, no bytes only the latency") {
  const CollectiveCost cost(hopper());
  CHECK(cost(collective(Work::all_reduce, kGiB, 1)).ticks() == 0);
  const CollectiveTime empty = cost(collective(Work::all_gather, 0, 8));
  CHECK(latency(empty) == Approx(6.6 + 7 * 0.6));
  CHECK(empty.transfer_ticks == 0);
  CHECK(empty.wire_bytes_per_tick == 0);
}

TEST_CASE("collectives: a large ring all-gather takes the base, n - 1 steps, and (n - 1) / n of the bytes") {
  for (const std::uint32_t n : {2U, 3U, 4U, 7U, 8U}) {
    for (const double bus : {100e9, 360e9}) {
      const CollectiveTime t = CollectiveCost(hopper(bus))(collective(Work::all_gather, 4 * kGiB, n));
      const double others = n - 1;
      CHECK(latency(t) == Approx(8.4 + others * 3.4));
      CHECK(t.transfer_ticks / 1e6 == Approx(4.0 * kGiB * others / n / bus * 1e6));
      CHECK(t.wire_bytes_per_tick == Approx(bus / 1e12));  // each link carries the bus rate
      CHECK(t.host_link_bytes_per_tick == 0);
    }
  }
}

TEST_CASE("collectives: LL's and LL128's limits go by the GPU's generation") {
  const auto bus_of = [](const char* gpu, double bus, Protocol protocol) {  // GB/s, from the transfer of 7/8 S
    Cluster c = hopper(bus);
    c.gpu.name = gpu;
    const CollectiveTime t = CollectiveCost(c).with(collective(Work::all_gather, kGiB, 8), Algorithm::ring, protocol);
    return t.wire_bytes_per_tick * 1e3;
  };
  CHECK(bus_of("NVIDIA A100-SXM4-80GB", 230e9, Protocol::ll) == Approx(87.7));
  CHECK(bus_of("NVIDIA H200", 360e9, Protocol::ll) == Approx(141));
  CHECK(bus_of("NVIDIA B200", 700e9, Protocol::ll) == Approx(282));
  CHECK(bus_of("NVIDIA H200", 200e9, Protocol::ll) == Approx(100));  // half the bus
  CHECK(bus_of("NVIDIA H200", 360e9, Protocol::ll128) == Approx(0.92 * 360));
  CHECK(bus_of("NVIDIA A100-SXM4-80GB", 300e9, Protocol::ll128) == Approx(12 * 20));
}

TEST_CASE("collectives: LL, then LL128, then Simple as the size grows, and never back") {
  const CollectiveCost cost(hopper());
  for (const Work work : {Work::all_gather, Work::reduce_scatter, Work::all_reduce}) {
    std::vector<Protocol> seen;
    double before = 0;
    for (double bytes = 256; bytes < 8e9; bytes *= 1.1) {
      const CollectiveTime t = cost(collective(work, static_cast<std::int64_t>(bytes), 8));
      if (seen.empty() || seen.back() != t.protocol) seen.push_back(t.protocol);
      CHECK(t.ticks() > before);
      before = t.ticks();
    }
    CHECK(seen == std::vector{Protocol::ll, Protocol::ll128, Protocol::simple});
  }
}

TEST_CASE("collectives: more bytes never take less, whatever the shape") {
  const CollectiveCost cost(hopper());
  struct Shape {
    std::uint32_t members, domains;
  };
  for (const Shape shape : {Shape{2, 1}, Shape{16, 2}, Shape{8, 8}, Shape{24, 3}, Shape{512, 64}}) {
    for (const Work work : {Work::all_gather, Work::reduce_scatter, Work::all_reduce, Work::all_to_all}) {
      // By powers of two: a tree's correction may rise by up to a third from one size class to the next.
      double before = 0;
      for (std::int64_t bytes = 64; bytes < 64 * kGiB; bytes *= 2) {
        const double now = cost(collective(work, bytes, shape.members, shape.domains)).ticks();
        CHECK(now >= before);
        before = now;
      }
    }
  }
}

TEST_CASE("collectives: half the rate and twice the latency of a step take twice as long, but for NCCL's base") {
  Cluster slow = hopper(180e9);
  slow.interconnect.nvlink_latency.value = {6.8e-6};
  slow.interconnect.network.value = {25e9};
  slow.interconnect.network_latency.value = {28e-6};
  const auto beyond_base = [](const Cluster& c, const Op& op) {
    return micros(CollectiveCost(c).with(op, Algorithm::ring, Protocol::simple)) - 8.4;
  };
  for (const Op& op : {collective(Work::all_gather, kGiB, 8), collective(Work::reduce_scatter, kMiB, 16, 2),
                       collective(Work::all_reduce, kGiB, 8)}) {
    CHECK(beyond_base(slow, op) == Approx(2 * beyond_base(hopper(), op)));
  }
}

TEST_CASE("collectives: over two hosts of eight, rings for the large and LL128 trees for the middling all-reduce") {
  const CollectiveCost cost(hopper());  // bus: 8 x 50 GB/s between hosts, so NVLink's 360
  const Op large = collective(Work::all_reduce, kGiB, 16, 2);
  // (8.4 + 28 * 3.4 + 2 * 14) * 1.4, and 1 GiB at 360 * 16 / 30
  CHECK(latency(cost(large)) == Approx(131.6 * 1.4));
  CHECK(micros(cost(large)) == Approx(184.24 + 5592.4).epsilon(1e-4));
  CHECK(cost(large).algorithm == Algorithm::ring);
  // 8.4 + 2 * (7 * 4 + 14), and 1 GiB at 0.92 * 360 / 2
  CHECK(micros(cost.with(large, Algorithm::tree, Protocol::simple)) == Approx(92.4 + 6484.0).epsilon(1e-4));
  const CollectiveTime middling = cost(collective(Work::all_reduce, 4 * kMiB, 16, 2));
  CHECK(middling.algorithm == Algorithm::tree);
  CHECK(middling.protocol == Protocol::ll128);
  // 14 + 2 * (7 * 1.25 + 8.5), and 4 MiB at 0.92 * 360 * 120 / 128 / 2 * 0.8
  CHECK(micros(middling) == Approx(48.5 + 33.77).epsilon(1e-3));
  // Each GPU's network card takes its eighth of what leaves the host.
  CHECK(cost(large).host_link_bytes_per_tick == Approx(cost(large).wire_bytes_per_tick / 8));
}

TEST_CASE("collectives: with one member a host the network alone counts, and PAT takes the small ones") {
  const CollectiveCost cost(hopper());
  const CollectiveTime small = cost(collective(Work::all_gather, kMiB, 8, 8, 8));
  CHECK(small.algorithm == Algorithm::pat);
  CHECK(micros(small) == Approx(8 + 8 * 2.8 + 3 * 4 + 27.96).epsilon(1e-3));  // 1 MiB at 0.75 * 50 GB/s
  const CollectiveTime large = cost(collective(Work::reduce_scatter, kGiB, 8, 8, 8));
  CHECK(large.algorithm == Algorithm::ring);
  CHECK(micros(large) == Approx(8.4 + 7 * 14 + 1e6 * kGiB * 7 / 8 / 50e9));
  CHECK(large.host_link_bytes_per_tick == Approx(0.05));
  // The step between hosts is a tree's even in a ring: LL128's 8.5 us in place of 4.
  CHECK(latency(cost.with(collective(Work::all_gather, kMiB, 8, 8, 8), Algorithm::ring, Protocol::ll128)) ==
        Approx(14 + 7 * 8.5));
}

TEST_CASE("collectives: between 2 and 8 members a host, the network links of all of them count") {
  const CollectiveTime t = CollectiveCost(hopper())(collective(Work::all_gather, kGiB, 8, 4, 4));
  CHECK(latency(t) == Approx(8.4 + 4 * 3.4 + 3 * 14));
  CHECK(t.wire_bytes_per_tick == Approx(0.1));
  CHECK(t.host_link_bytes_per_tick == Approx(0.05));
}

TEST_CASE("collectives: a workstation's pair over PCIe has PCIe's steps and no LL128") {
  Cluster c = hopper(45e9);
  c.gpus_per_host = 2;
  c.gpu.name = "NVIDIA RTX PRO 6000 Blackwell Workstation Edition";
  c.interconnect.nvlink_domain = 2;
  c.interconnect.nvlink_latency.value = {5.7e-6};
  const CollectiveCost cost(c);
  CHECK(micros(cost(collective(Work::all_gather, kGiB, 2))) == Approx(8.4 + 5.7 + 1e6 * kGiB / 90e9));
  CHECK(latency(cost(collective(Work::all_gather, 1024, 2))) == Approx(6.6 + 1.0));
  for (std::int64_t bytes = 1024; bytes < kGiB; bytes *= 2) {
    CHECK(cost(collective(Work::all_reduce, bytes, 2)).protocol != Protocol::ll128);
  }
  const CollectiveTime large = cost(collective(Work::all_gather, kGiB, 2));
  CHECK(large.host_link_bytes_per_tick == large.wire_bytes_per_tick);
}

TEST_CASE("collectives: where NVLink does not join a host's GPUs, PCIe does, and hosts are the nodes") {
  Cluster c = hopper();
  c.gpus_per_host = 4;
  c.interconnect.nvlink_domain = 1;
  const double pcie = 0.8 * 50e9;  // half of 100 GB/s both ways
  const CollectiveTime inside = CollectiveCost(c)(collective(Work::all_gather, kGiB, 4, 4));
  CHECK(micros(inside) == Approx(8.4 + 3 * 5.7 + 1e6 * kGiB * 3 / 4 / pcie));
  const CollectiveTime two_hosts = CollectiveCost(c)(collective(Work::all_gather, kGiB, 8, 8));
  CHECK(micros(two_hosts) == Approx(8.4 + 6 * 5.7 + 14 + 1e6 * kGiB * 7 / 8 / pcie));
  // Every second GPU of two hosts: two members a host, so two network links.
  c.interconnect.network.value = {10e9};
  const CollectiveTime strided = CollectiveCost(c)(collective(Work::all_gather, kGiB, 4, 4, 2));
  CHECK(micros(strided) == Approx(8.4 + 2 * 5.7 + 14 + 1e6 * kGiB * 3 / 4 / 20e9));
}

TEST_CASE("collectives: all-to-all takes the slower of what stays and what leaves") {
  const CollectiveCost cost(hopper());
  const CollectiveTime inside = cost(collective(Work::all_to_all, kGiB, 8));
  CHECK(inside.algorithm == Algorithm::pairs);
  CHECK(micros(inside) == Approx(8.4 + 3.4 + 1e6 * kGiB * 7 / 8 / 360e9));
  // Two hosts: half leaves, at 50 GB/s; 7/16 stays, at 360.
  const CollectiveTime two = cost(collective(Work::all_to_all, kGiB, 16, 2));
  CHECK(micros(two) == Approx(8.4 + 14 + 1e6 * kGiB / 2 / 50e9));
  CHECK(two.host_link_bytes_per_tick == Approx(0.05));
  CHECK(micros(cost(collective(Work::all_to_all, kGiB, 4, 4))) == Approx(8.4 + 14 + 1e6 * kGiB * 3 / 4 / 50e9));
}

TEST_CASE("collectives: the floor replaces a shorter latency and leaves the transfer and the choice alone") {
  Cluster c = hopper();
  const Op small = collective(Work::all_gather, kMiB, 8);
  const Op steps = collective(Work::all_gather, kGiB, 8);
  const CollectiveTime before = CollectiveCost(c)(small);
  c.interconnect.collective_floor.value = {33e-6};
  const CollectiveTime after = CollectiveCost(c)(small);
  CHECK(latency(after) == Approx(33));
  CHECK(after.transfer_ticks == before.transfer_ticks);
  CHECK(after.protocol == before.protocol);
  c.interconnect.collective_floor.value = {30e-6};
  CHECK(latency(CollectiveCost(c)(steps)) == Approx(32.2));
}

TEST_CASE("collectives: product names tell the generation") {
  using enum sim::Architecture;
  const sim::NcclGpu hopper_gpu{hopper, true};
  for (const char* name :
       {"NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA GH200 480GB", "NVIDIA H20", "a test's GPU", ""})
    CHECK(sim::nccl_gpu(name) == hopper_gpu);
  for (const char* name : {"NVIDIA B200", "NVIDIA GB200"}) CHECK(sim::nccl_gpu(name) == sim::NcclGpu{blackwell, true});
  for (const char* name : {"NVIDIA A100-SXM4-80GB", "NVIDIA RTX A6000", "NVIDIA GeForce RTX 3090"})
    CHECK(sim::nccl_gpu(name) == sim::NcclGpu{ampere, true});
  for (const char* name : {"NVIDIA GeForce RTX 4090", "NVIDIA RTX 6000 Ada Generation", "NVIDIA L40S", "NVIDIA L4"})
    CHECK(sim::nccl_gpu(name) == sim::NcclGpu{ampere, false});
  for (const char* name : {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "NVIDIA GeForce RTX 5090"})
    CHECK(sim::nccl_gpu(name) == sim::NcclGpu{blackwell, false});
}
