// What hosts say in /proc and /sys (tests/data/hosts), and what it means with and without a plan. Expected figures are
// those written into the trees.
#include "planner/doctor.hpp"

#include <fstream>

#include "models/job_yaml.hpp"
#include "planner/doctor_need.hpp"
#include "planner/host_facts.hpp"
#include "planner/search.hpp"
#include "tests/catch.hpp"
#include "tests/replay/fake_root.hpp"

using namespace ebb;

namespace {

std::string host(const std::string& name) { return std::string(EBB_TEST_DATA) + "/hosts/" + name; }

HostFinding of(const std::vector<HostFinding>& findings, const std::string& topic) {
  for (const HostFinding& finding : findings)
    if (finding.topic == topic) return finding;
  FAIL("no finding about " << topic);
  return {};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Eight ranks a host.
HostNeed need_of(Bytes pinned, Bytes pageable) {
  return {.job = "job",
          .policy = "chunked",
          .hosts = 1,
          .ranks = 8,
          .pinned = pinned,
          .pageable = pageable,
          .checkpoint = 1_GiB,
          .gpu = "NVIDIA H200",
          .h2d = {55.4e9}};
}

}  // namespace

TEST_CASE("host facts: a server with two sockets and eight GPUs") {
  const HostFacts facts = read_host_facts(host("hgx-h200"));
  CHECK(facts.limits.total == Bytes{2113454592LL * 1024});
  CHECK_FALSE(facts.limits.memlock);
  CHECK_FALSE(facts.limits.virtual_machine);
  CHECK(facts.driver == "580.65.06");  // of the open kernel modules
  CHECK(facts.infiniband);
  CHECK(facts.transparent_huge_pages == "madvise");
  REQUIRE(facts.gpus.size() == 8);  // and not the switches
  CHECK(facts.gpus[0] == GpuFacts{"0000:18:00.0", "NVIDIA H200", 0, {32, 16}, {32, 16}});
  CHECK(facts.gpus[7].node == 1);
  CHECK(facts.nodes == std::vector<NumaNode>{{0, {1056480256LL * 1024}}, {1, {1056974336LL * 1024}}});
  CHECK(facts.shared_memory == Bytes{2113454592LL * 512});  // no size: half of the memory
  CHECK(facts.container.empty());
}

TEST_CASE("host facts: a container, a workstation under WSL, version 1 groups") {
  const HostFacts container = read_host_facts(host("container-64g"), "/data/checkpoints");
  CHECK(container.container == "docker");
  CHECK(container.driver == "535.183.01");
  CHECK(container.limits.memlock == 8_MiB);
  CHECK_FALSE(container.may_lock);  // CapEff 00000000a80425fb: docker's own set
  CHECK(container.shared_memory == 64_MiB);
  CHECK(container.huge_pages == 8_GiB);
  CHECK(container.gpus.at(0).now == PcieLink{2.5, 16});
  REQUIRE(container.disk);
  CHECK(container.disk->filesystem == "nfs4");
  REQUIRE(tightest(container.limits) != nullptr);
  CHECK(tightest(container.limits)->left() == 62_GiB);  // 64 GiB less 9 used, 7 of them cache

  const HostFacts wsl = read_host_facts(host("wsl2"));
  CHECK(wsl.wsl);
  CHECK(wsl.windows_driver);
  CHECK(wsl.gpus.empty());
  CHECK(wsl.driver.empty());

  const HostFacts old = read_host_facts(host("low-memlock"));
  CHECK(old.limits.memlock == 64_KiB);
  CHECK_FALSE(old.gpus.at(0).node);
  CHECK(old.gpus.at(2).now.width == 8);
  REQUIRE(tightest(old.limits) != nullptr);
  CHECK(tightest(old.limits)->left() == 191_GiB);  // 200 GiB less 10 used, 1 of them cache
}

TEST_CASE("host facts: what is missing or nonsense stays unset") {
  CHECK(read_host_facts(host("not-there"), "/x").gpus.empty());
  const test::FakeRoot root;
  for (const char* file : {"proc/meminfo", "proc/version", "proc/self/limits", "proc/self/mountinfo",
                           "proc/driver/nvidia/version", "sys/bus/pci/devices/x/vendor", "proc/self/status",
                           "sys/devices/system/node/node/meminfo", "sys/kernel/mm/hugepages/hugepages/nr_hugepages",
                           "sys/kernel/mm/transparent_hugepage/enabled", "proc/self/cgroup"})
    root.write(file, "] - \xff[ 0x Kernel Module\n- - -\n");
  const HostFacts facts = read_host_facts(root.path(), "/x/y");
  CHECK(facts.driver.empty());
  CHECK(facts.nodes.empty());
  CHECK_FALSE(facts.limits.total);
  for (const HostFinding& finding : diagnose(facts, need_of(1_GiB, 0_GiB))) CHECK_FALSE(finding.figure.empty());
}

TEST_CASE("links: what PCI Express carries each way") {
  // Gen 3, 4, 5 with 16 lanes: 15.75, 31.51, 63.02 GB/s; Gen 1 with one: 250 MB/s.
  CHECK(PcieLink{8, 16}.rate().value == Approx(15.754e9).epsilon(1e-4));
  CHECK(PcieLink{16, 16}.rate().value == Approx(31.508e9).epsilon(1e-4));
  CHECK(PcieLink{32, 16}.rate().value == Approx(63.015e9).epsilon(1e-4));
  CHECK(PcieLink{2.5, 1}.rate().value == Approx(250e6));
}

TEST_CASE("doctor: without a job nothing is a problem, and each note says what to do") {
  for (const char* name : {"hgx-h200", "container-64g", "wsl2", "low-memlock"}) {
    CAPTURE(name);
    for (const HostFinding& finding : diagnose(read_host_facts(host(name)), std::nullopt)) {
      CAPTURE(finding.topic);
      CHECK(finding.verdict != Verdict::problem);
      CHECK_FALSE(finding.figure.empty());
      if (finding.verdict == Verdict::note) CHECK_FALSE(finding.consequence.empty());
    }
  }
  const auto server = diagnose(read_host_facts(host("hgx-h200")), std::nullopt);
  for (const HostFinding& finding : server) CHECK(finding.verdict == Verdict::ok);
}

TEST_CASE("doctor: a plan against memory, its control group, and the node of its GPUs") {
  const HostFacts server = read_host_facts(host("hgx-h200"));
  const auto fits = diagnose(server, need_of(1000_GiB, 100_GiB));
  for (const HostFinding& finding : fits) CHECK(finding.verdict == Verdict::ok);
  CHECK(has(of(fits, "numa").consequence, "137.5 GiB of its node"));  // 1,100 / 8

  CHECK(of(diagnose(server, need_of(2000_GiB, 16_GiB)), "memory").verdict == Verdict::problem);  // 2,015.5 in all
  CHECK(of(diagnose(server, need_of(1990_GiB, 24_GiB)), "memory").verdict == Verdict::problem);  // 1,993.2 available

  HostFacts uneven = server;  // six GPUs near node 0, which has 1,007.5 GiB
  uneven.gpus[4].node = 0;
  uneven.gpus[5].node = 0;
  CHECK(of(diagnose(uneven, need_of(1340_GiB, 0_GiB)), "numa").verdict == Verdict::ok);
  const HostFinding numa = of(diagnose(uneven, need_of(1360_GiB, 0_GiB)), "numa");
  CHECK(numa.verdict == Verdict::problem);
  CHECK(has(numa.consequence, "6 ranks want 1020 GiB of node 0"));

  const HostFacts container = read_host_facts(host("container-64g"));
  HostNeed one = need_of(60_GiB, 2_GiB);
  one.ranks = 1;
  one.gpu = "NVIDIA H100 80GB HBM3";
  CHECK(of(diagnose(container, one), "cgroup").verdict == Verdict::ok);
  one.pageable = Bytes{(2_GiB).value + 1};
  const HostFinding group = of(diagnose(container, one), "cgroup");
  CHECK(group.verdict == Verdict::problem);
  CHECK(has(group.cure, "docker --memory"));
}

TEST_CASE("doctor: locked memory binds RDMA, never CUDA's pinning") {
  HostFacts facts = read_host_facts(host("low-memlock"));
  HostNeed need = need_of(1_GiB, 0_GiB);
  need.ranks = 4;
  CHECK(of(diagnose(facts, need), "memlock").verdict == Verdict::note);  // one host: no RDMA
  need.hosts = 2;
  CHECK(of(diagnose(facts, need), "memlock").verdict == Verdict::problem);
  facts.may_lock = true;
  CHECK(of(diagnose(facts, need), "memlock").verdict == Verdict::ok);
}

TEST_CASE("doctor: driver, devices and link against what the plan counts on") {
  HostFacts facts = read_host_facts(host("hgx-h200"));
  facts.driver = "390.157";
  CHECK(of(diagnose(facts, need_of(1_GiB, 0_GiB)), "driver").verdict == Verdict::problem);
  facts.gpus.resize(4);
  CHECK(of(diagnose(facts, need_of(1_GiB, 0_GiB)), "gpus").verdict == Verdict::problem);
  HostNeed other = need_of(1_GiB, 0_GiB);
  other.ranks = 4;
  other.gpu = "NVIDIA B200";
  // Memory and times of another GPU: the plan does not run as predicted.
  CHECK(of(diagnose(facts, other), "gpus").verdict == Verdict::problem);
  other.gpu = "H200";
  CHECK(of(diagnose(facts, other), "gpus").verdict == Verdict::ok);
  other.gpu = "NVIDIA B200";

  facts.gpus[3].now.width = 8;  // 31.5 GB/s each way, and the plan counts on 55.4
  const HostFinding slow = of(diagnose(facts, other), "link");
  CHECK(slow.verdict == Verdict::problem);
  CHECK(has(slow.figure, "x8"));
  facts.gpus[3].now = {2.5, 16};  // idle
  CHECK(of(diagnose(facts, other), "link").verdict == Verdict::ok);

  HostFacts nothing;
  CHECK(of(diagnose(nothing, need_of(1_GiB, 0_GiB)), "driver").verdict == Verdict::problem);
  CHECK(of(diagnose(nothing, std::nullopt), "driver").verdict == Verdict::note);
}

TEST_CASE("doctor: a checkpoint against the disk") {
  HostFacts facts = read_host_facts(host("hgx-h200"));
  facts.disk = DiskFacts{"/ckpt", "xfs", 1_GiB};
  CHECK(of(diagnose(facts, need_of(1_GiB, 0_GiB)), "disk").verdict == Verdict::ok);
  facts.disk->free = Bytes{(1_GiB).value - 1};
  CHECK(of(diagnose(facts, need_of(1_GiB, 0_GiB)), "disk").verdict == Verdict::problem);
}

TEST_CASE("doctor: a directory of checkpoints that is missing is said to be, with its nearest parent's disk") {
  const test::FakeRoot root;
  root.write("proc/self/mountinfo", "1 0 0:1 / / rw - ext4 /dev/sda rw\n");
  root.write("data/there", "");
  const HostFacts facts = read_host_facts(root.path(), "/data/ckpt/run1");
  REQUIRE(facts.disk);
  CHECK(facts.disk->nearest == "/data");
  const HostFinding missing = of(diagnose(facts, need_of(1_GiB, 0_GiB)), "disk");
  CHECK(missing.verdict != Verdict::ok);
  CHECK(has(missing.figure, "/data/ckpt/run1 is missing; /data: "));
  const HostFacts there = read_host_facts(root.path(), "/data");
  CHECK(there.disk->nearest.empty());
  CHECK_FALSE(has(of(diagnose(there, need_of(1_GiB, 0_GiB)), "disk").figure, "missing"));
}

TEST_CASE("doctor: too little memory is a problem on a virtual machine as well") {
  HostFacts facts = read_host_facts(host("hgx-h200"));
  facts.limits.virtual_machine = true;
  const HostFinding total = of(diagnose(facts, need_of(2000_GiB, 16_GiB)), "memory");  // it has 2,015.5 GiB
  CHECK(total.verdict == Verdict::problem);
  CHECK(has(total.consequence, "virtual machine"));
  CHECK(of(diagnose(facts, need_of(1990_GiB, 24_GiB)), "memory").verdict == Verdict::problem);  // 1,993.2 available
}

TEST_CASE("doctor: what a host needs is the plan's number, to the byte") {
  for (const char* name : {"llama3-8b-hgx-h200", "qwen3-8b-rtxpro6000", "measured-1.8b-1xh200"}) {
    INFO(name);
    const Job job = load_job(name);
    const SearchResult result = search(job, {.cures = false});
    REQUIRE(result.recommended);
    const Answer& pick = result.candidates[*result.recommended];
    const std::optional<HostNeed> need = host_need(job);
    REQUIRE(need);
    CHECK(need->pinned == pick.host_pinned_per_host);
    CHECK(need->pinned + need->pageable == pick.host_needed());
  }
}

TEST_CASE("doctor: what the measured job wants of its host") {
  Job job = load_job("measured-1.8b-1xh200");
  job.offload = {.policy = Policy::chunked, .chunk_numel = Numel{1'000'000'000}};
  const std::optional<HostNeed> need = host_need(job);
  REQUIRE(need);
  CHECK(need->ranks == 1);
  CHECK(need->hosts == 1);
  // Recorded: 22.1 GiB of resident host memory more than before, 1,816,758,272 elements, 12 bytes each.
  CHECK(static_cast<double>(need->pinned.value) / (1_GiB).value == Approx(22.1).epsilon(0.03));
  // torch_dist: bf16 parameters and fp32 state.
  CHECK(need->checkpoint == Bytes{1'816'758'272LL * 14});
}
