// Op costs: each formula against a hand-worked number.
#include "sim/op_cost.hpp"

#include "tests/catch.hpp"
#include "tests/sim/plan_builder.hpp"

using namespace ebb;
using test::PlanBuilder;

namespace {

constexpr double kMicro = 1e6;  // ticks

Op op_of(OpKind kind, Work work = Work::none) { return PlanBuilder::op(kind, {0}, work); }

double cost(const Op& op, const Cluster& cluster = test::h200_host(), std::int64_t ranks = 1) {
  return static_cast<double>(sim::OpCost(cluster, {.ranks_per_host = ranks})(op).value);
}

Op collective(Work work, std::int64_t bytes, std::uint32_t members, std::uint32_t domains = 1) {
  Op op = op_of(OpKind::collective, work);
  op.bytes = {bytes};
  op.members = members;
  op.domains = domains;
  return op;
}

}  // namespace

TEST_CASE("costs: bookkeeping is free, a wait costs its call") {
  REQUIRE(cost(op_of(OpKind::allocate)) == 0);
  REQUIRE(cost(op_of(OpKind::release)) == 0);
  REQUIRE(cost(op_of(OpKind::host_wait)) == 5 * kMicro);
}

TEST_CASE("costs: each piece of a copy pays the latency") {
  Op copy = op_of(OpKind::copy_h2d);
  copy.calls = 9;
  copy.bytes = {1 << 30};
  REQUIRE(cost(copy) == Approx(9 * 2.8 * kMicro));
  copy.kind = OpKind::copy_d2h;
  REQUIRE(cost(copy) == Approx(9 * 2.8 * kMicro));
}

TEST_CASE("costs: Adam over 1 Gi elements takes 7.57 ms on an H200, as measured") {
  Op adam = op_of(OpKind::kernel, Work::adam);
  adam.bytes = {28LL << 30};
  REQUIRE(cost(adam) == Approx(7570 * kMicro).epsilon(0.002));  // measured 7,561-7,599 us
  adam.work = Work::adam_foreach;
  adam.bytes = {28LL << 28};
  REQUIRE(cost(adam) == Approx(5970 * kMicro).epsilon(0.005));  // measured 5,970 us (torch, unfused)
}

TEST_CASE("costs: other kernels run at the memory's rate; launches cost the host, not the device") {
  for (const Work work : {Work::cast, Work::grad_norm, Work::clip, Work::zero_grads}) {
    Op kernel = op_of(OpKind::kernel, work);
    kernel.bytes = {4'260'000'000};
    kernel.calls = 100;
    REQUIRE(cost(kernel) == Approx(1000 * kMicro));
  }
}

TEST_CASE("costs: a kernel takes its floor once, on top of its bytes, whatever its launches") {
  Cluster cluster = test::h200_host();
  cluster.gpu.kernel_floor.value = {6e-6};
  Op kernel = op_of(OpKind::kernel, Work::cast);
  kernel.calls = 100;
  CHECK(cost(kernel, cluster) == Approx(6 * kMicro));
  kernel.bytes = {4'260'000'000};
  CHECK(cost(kernel, cluster) == Approx(1006 * kMicro));
  kernel.work = Work::adam;
  cluster.gpu.adam.value = {4e12};
  kernel.bytes = {120'000'000};
  CHECK(cost(kernel, cluster) == Approx(36 * kMicro));
}

TEST_CASE("costs: the host thread pays for each call, and for each event that an op waits for") {
  const sim::OpCost costs(test::h200_host(), {});
  Op kernel = op_of(OpKind::kernel, Work::cast);
  kernel.calls = 100;
  CHECK(static_cast<double>(costs.issue(kernel, 0).first.value) == Approx(3.4 * kMicro));
  CHECK(static_cast<double>(costs.issue(kernel, 0).all.value) == Approx(100 * 3.4 * kMicro));
  CHECK(static_cast<double>(costs.issue(kernel, 2).all.value) == Approx((100 * 3.4 + 2 * 0.45) * kMicro));
  Op copy = op_of(OpKind::copy_h2d);
  copy.calls = 3;
  CHECK(static_cast<double>(costs.issue(copy, 1).first.value) == Approx((2.2 + 0.45) * kMicro));
  CHECK(static_cast<double>(costs.issue(copy, 1).all.value) == Approx((3 * 2.2 + 0.45) * kMicro));
  Op collective = op_of(OpKind::collective, Work::all_gather);
  CHECK(costs.issue(collective, 0).all == Ticks{0});  // of one rank: no call
  collective.members = 2;
  CHECK(static_cast<double>(costs.issue(collective, 0).all.value) == Approx(15 * kMicro));
  Op allocate = op_of(OpKind::allocate);
  allocate.calls = 12;
  CHECK(static_cast<double>(costs.issue(allocate, 0).all.value) == Approx(6 * kMicro));
  CHECK(costs.issue(op_of(OpKind::release), 0).all == Ticks{0});
}

TEST_CASE("costs: pinning costs by the byte and by the block") {
  Cluster c = test::h200_host();
  c.host.pin_seconds_per_gib.value = 0.362;
  c.host.pin_call.value = {1e-3};
  Op pin = op_of(OpKind::host_work, Work::pin);
  pin.bytes = 4_GiB;
  pin.calls = 2;
  CHECK(to_seconds(sim::OpCost(c, {})(pin)).value == Approx(4 * 0.362 + 2e-3));  // 4 GiB in 1.449 s: measured
}

TEST_CASE("costs: host work counts calls; host Adam shares the host") {
  Op work = op_of(OpKind::host_work, Work::chunk_overhead);
  work.calls = 3;
  REQUIRE(cost(work) == Approx(300 * kMicro));
  work.work = Work::tensor_scan;
  REQUIRE(cost(work) == Approx(3 * kMicro));
  work.work = Work::launch;
  REQUIRE(cost(work) == Approx(10.2 * kMicro));
  work.work = Work::cpu_adam;
  work.bytes = {100'000'000};
  REQUIRE(cost(work) == Approx(1000 * kMicro));
  REQUIRE(cost(work, test::h200_host(), 8) == Approx(8000 * kMicro));
}

TEST_CASE("costs: a framework's host work takes what the plan says, and asks the cluster where it says nothing") {
  for (const Work kind : {Work::chunk_overhead, Work::tensor_scan}) {
    Op work = op_of(OpKind::host_work, kind);
    work.calls = 3;
    work.duration = {777 * kTicksPerSecond / 1'000'000};  // of all three calls
    REQUIRE(cost(work) == Approx(777 * kMicro));
    work.duration = {0};
    REQUIRE(cost(work) == Approx((kind == Work::chunk_overhead ? 300 : 3) * kMicro));
  }
  Op launch = op_of(OpKind::host_work, Work::launch);
  launch.duration = {kTicksPerSecond};
  REQUIRE(cost(launch) == Approx(3.4 * kMicro));
}

TEST_CASE("costs: a collective is NCCL's latency and the transfer, which are also told apart") {
  // 8 members, 2.7 GB at 270 GB/s of bus bandwidth: 7 steps of 3.4 us and 10 ms * 7 / 8; all-reduce twice both.
  const double once = 7 * 3.4 + 10'000 * 7.0 / 8;
  REQUIRE(cost(collective(Work::all_gather, 2'700'000'000, 8)) == Approx((8.4 + once) * kMicro));
  REQUIRE(cost(collective(Work::reduce_scatter, 2'700'000'000, 8)) == Approx((8.4 + once) * kMicro));
  REQUIRE(cost(collective(Work::all_reduce, 2'700'000'000, 8)) == Approx((8.4 + 2 * once) * kMicro));
  REQUIRE(cost(collective(Work::all_reduce, 2'700'000'000, 1)) == 0);
  const sim::CollectiveTime parts =
      sim::OpCost(test::h200_host(), {}).collective(collective(Work::all_gather, 2'700'000'000, 8));
  REQUIRE(parts.latency_ticks == Approx((8.4 + 7 * 3.4) * kMicro));
  REQUIRE(parts.transfer_ticks == Approx(8750 * kMicro));
}

TEST_CASE("costs: a ring over several domains uses every member's network link, and NVLink at most") {
  // One member a domain: the network alone, 50 GB/s and 14 us a step.
  REQUIRE(cost(collective(Work::all_gather, 500'000'000, 4, 4)) == Approx((8.4 + 3 * 14 + 10'000 * 3.0 / 4) * kMicro));
  // Two a domain: twice the network; 4 + 3 of the 7 steps are inside and between domains.
  REQUIRE(cost(collective(Work::all_gather, 1'000'000'000, 8, 4)) ==
          Approx((8.4 + 4 * 3.4 + 3 * 14 + 10'000 * 7.0 / 8) * kMicro));
  // Eight a domain would be 400 GB/s: NVLink's 270 bind.
  REQUIRE(cost(collective(Work::all_gather, 2'700'000'000, 16, 2)) ==
          Approx((8.4 + 14 * 3.4 + 1 * 14 + 10'000 * 15.0 / 16) * kMicro));
}

TEST_CASE("costs: a collective over a link without a rate is refused, not forever") {
  Cluster no_nvlink = test::h200_host();
  no_nvlink.interconnect.nvlink.value = {0};
  REQUIRE_THROWS_AS(cost(collective(Work::all_gather, 1, 2), no_nvlink), InputError);
}

TEST_CASE("costs: a figure that no op uses may be missing, and no bytes cost nothing") {
  Op adam = op_of(OpKind::kernel, Work::adam);
  REQUIRE(cost(adam, Cluster{}) == 0);
  Op compute = op_of(OpKind::compute);
  compute.duration = {123};
  REQUIRE(cost(compute, Cluster{}) == 123);
}
