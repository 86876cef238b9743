// Pinned host memory against public reports of what was asked and what was held, and of what hosts refuse.
#include "sim/pinned_memory.hpp"

#include <numeric>
#include <random>

#include "tests/catch.hpp"

using namespace ebb;
using namespace ebb::sim;

namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

double gib(Bytes bytes) { return static_cast<double>(bytes.value) / kGiB; }
Bytes of_gib(double size) { return {static_cast<std::int64_t>(size * kGiB)}; }

PinnedLayout blocks(std::int64_t count, Bytes each, PinnedRounding rounding = PinnedRounding::power_of_two) {
  PinnedLayout layout;
  layout.add(each, rounding, count);
  return layout;
}

Cluster host_of(Bytes memory, std::int64_t gpus = 8, std::int64_t sockets = 2) {
  Cluster cluster;
  cluster.gpus_per_host = gpus;
  cluster.host.sockets = sockets;
  cluster.host.memory.value = memory;
  return cluster;
}

std::vector<std::string> limits(const PinnedLayout& rank, Bytes memory, PinnedEnvironment environment = {}) {
  return pinned_limits(std::vector<PinnedLayout>{rank}, host_of(memory), environment);
}

}  // namespace

// https://github.com/vllm-project/vllm/issues/53042: four ranks, 24 tensors each.
TEST_CASE("200 GiB asked are 384 GiB held") {
  PinnedLayout all;
  for (int rank = 0; rank < 4; ++rank) all += blocks(24, {2'236'817'408});
  CHECK(gib(all.asked) == Approx(199.99).margin(0.01));
  CHECK(all.held == 384_GiB);
  CHECK(all.calls == 96);
  CHECK(all.largest == 4_GiB);
  CHECK(blocks(96, {2'236'817'408}, PinnedRounding::exact).held == all.asked);
}

// https://github.com/pytorch/pytorch/issues/95823 (8,292.4 MiB take 16 GiB),
// https://github.com/vllm-project/vllm/pull/48436 (40 GiB take 64, 32 take 32),
// https://github.com/wtdcode/vllm-backport/pull/67 (2.25 take 4, 1.125 take 2),
// https://github.com/deepspeedai/DeepSpeed/issues/7150 (6.62 take 8).
TEST_CASE("single blocks as reported") {
  CHECK(blocks(1, {std::int64_t{4'347'592'704} * 2}).held == 16_GiB);
  CHECK(blocks(1, 40_GiB).held == 64_GiB);
  CHECK(blocks(1, 32_GiB).held == 32_GiB);
  CHECK(blocks(1, of_gib(2.25)).held == 4_GiB);
  CHECK(blocks(1, of_gib(1.125)).held == 2_GiB);
  CHECK(blocks(1, {std::int64_t{1'776'255'488} * 4}).held == 8_GiB);
  CHECK(blocks(3, {0}).calls == 0);
  const std::vector<Bytes> list = {{5}, {0}, {8}};
  CHECK(pinned_layout(list, PinnedRounding::power_of_two).held == Bytes{16});
  CHECK(pinned_layout(list, PinnedRounding::exact).held == Bytes{13});
  CHECK(pinned_layout(list, PinnedRounding::exact).calls == 2);
}

// https://github.com/sgl-project/sglang/pull/39021: 40.9 GiB planned, 68 locked, a host of 60 GB; and the same host
// with exact blocks.
TEST_CASE("a host with room for what is asked and not for what is held") {
  const Bytes host{60'000'000'000};
  const std::vector<std::string> violated = limits(blocks(34, of_gib(1.2)), host);
  REQUIRE(violated.size() == 1);
  CHECK(violated[0] == "68.00 GiB pinned on a host of 55.88 GiB; offload a fraction, or pin exact bytes (40.80 GiB)");
  CHECK(limits(blocks(34, of_gib(1.2), PinnedRounding::exact), host).empty());
}

// https://github.com/xcena-dev/maru/pull/64: one registration of 510 GiB passes, of 512 GiB fails.
TEST_CASE("one registration has a limit, two halves of it have not") {
  CHECK(limits(blocks(1, 510_GiB, PinnedRounding::exact), 2048_GiB).empty());
  CHECK(limits(blocks(2, 260_GiB, PinnedRounding::exact), 2048_GiB).empty());
  const std::vector<std::string> violated = limits(blocks(1, 520_GiB, PinnedRounding::exact), 2048_GiB);
  REQUIRE(violated.size() == 1);
  CHECK(violated[0].find("split it") != std::string::npos);
  CHECK(limits(blocks(1, 300_GiB), 2048_GiB).size() == 1);  // rounded up to 512
}

// https://github.com/FlashML-org/FreeToken/pull/233 and https://github.com/microsoft/WSL/issues/14078: a host of 62.8
// GiB on which 25 GiB were planned.
TEST_CASE("WSL2 pins little, whatever is free") {
  CHECK(limits(blocks(25, 1_GiB), of_gib(62.8)).empty());
  CHECK(limits(blocks(25, 1_GiB), of_gib(62.8), {.wsl2 = true}).size() == 1);
  CHECK(limits(blocks(1, 256_MiB), of_gib(62.8), {.wsl2 = true}).empty());
}

TEST_CASE("ranks fill their own node, and the part that is remote the others") {
  Cluster cluster = host_of(64_GiB, 4);
  const std::vector<Bytes> held = {10_GiB, 20_GiB, 5_GiB, 1_GiB};
  CHECK(bytes_per_node(held, cluster) == std::vector<Bytes>{30_GiB, 6_GiB});
  cluster.topology.remote_memory.value = 0.5;
  CHECK(bytes_per_node(held, cluster) == std::vector<Bytes>{18_GiB, 18_GiB});
  cluster.topology.remote_memory.value = 1.0;
  CHECK(bytes_per_node(held, cluster) == std::vector<Bytes>{6_GiB, 30_GiB});
  cluster.host.sockets = 4;
  cluster.topology.remote_memory.value = 0.75;  // interleaved over all four
  CHECK(bytes_per_node(held, cluster) == std::vector<Bytes>(4, 9_GiB));
  cluster.host.sockets = 1;
  CHECK(bytes_per_node(held, cluster) == std::vector<Bytes>{36_GiB});
  CHECK(bytes_per_node({}, cluster) == std::vector<Bytes>{Bytes{0}});
}

TEST_CASE("no byte is lost between nodes") {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    Cluster cluster = host_of(64_GiB, 8, 1 + static_cast<std::int64_t>(random() % 8));
    cluster.topology.remote_memory.value = static_cast<double>(random() % 101) / 100.0;
    std::vector<Bytes> held(random() % 9);
    Bytes sum{0};
    for (Bytes& bytes : held) sum += bytes = {static_cast<std::int64_t>(random())};
    Bytes over_nodes{0};
    for (const Bytes node : bytes_per_node(held, cluster)) {
      CHECK(node.value >= 0);
      over_nodes += node;
    }
    CHECK(over_nodes == sum);
  }
}

TEST_CASE("a node counts only where memory is bound to it") {
  const Cluster cluster = host_of(64_GiB, 4);
  const PinnedLayout rank = blocks(20, 1_GiB);
  const std::vector<PinnedLayout> two_near = {rank, rank};
  CHECK(pinned_limits(two_near, cluster, {}).empty());
  const std::vector<std::string> violated = pinned_limits(two_near, cluster, {.bound = true});
  REQUIRE(violated.size() == 1);
  CHECK(violated[0].rfind("40.00 GiB pinned on NUMA node 0, which has 32.00 GiB; ", 0) == 0);
  const std::vector<PinnedLayout> spread = {rank, {}, rank, {}};
  CHECK(pinned_limits(spread, cluster, {.bound = true}).empty());
}

TEST_CASE("pinning costs by held byte and by call") {
  Host host;
  host.pin_seconds_per_gib.value = 0.5;
  host.pin_call.value = Seconds{1e-3};
  CHECK(pin_time(blocks(10, of_gib(1.2)), host).value == Approx(10 * 2 * 0.5 + 10e-3));
  CHECK(pin_time({}, host).value == 0);
}
