// What a host lets a process hold: read from made-up /proc and /sys trees, and judged.
#include "models/host_limits.hpp"

#include "replay/host_store_pieces.hpp"
#include "replay/numa.hpp"
#include "tests/catch.hpp"
#include "tests/replay/fake_root.hpp"

using namespace ebb;
using namespace ebb::replay;
using test::FakeRoot;

namespace {

constexpr const char* kMeminfo = "MemTotal:       65536000 kB\nMemFree:         1000 kB\nMemAvailable:   32768000 kB\n";
constexpr const char* kLimits =
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max cpu time              unlimited            unlimited            seconds   \n"
    "Max locked memory         8388608              unlimited            bytes     \n";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("host limits: memory, locked memory and the kind of machine are read from /proc") {
  FakeRoot root;
  root.write("proc/meminfo", kMeminfo);
  root.write("proc/self/limits", kLimits);
  root.write("proc/cpuinfo", "processor : 0\nflags\t\t: fpu vme de\n");
  const HostLimits limits = read_host_limits(root.path());
  CHECK(limits.total == Bytes{65536000LL * 1024});
  CHECK(limits.available == Bytes{32768000LL * 1024});
  CHECK(limits.memlock == Bytes{8388608});
  CHECK_FALSE(limits.virtual_machine);
  CHECK(limits.cgroups.empty());

  root.write("proc/cpuinfo", "flags : fpu hypervisor de\n");
  root.write("proc/self/limits", "Max locked memory         unlimited            unlimited            bytes\n");
  CHECK(read_host_limits(root.path()).virtual_machine);
  CHECK_FALSE(read_host_limits(root.path()).memlock);
  const HostLimits nothing = read_host_limits(root.path() + "/not-there");
  CHECK_FALSE(nothing.total);
  CHECK(nothing.virtual_machine);  // unknown: it may grow
}

TEST_CASE("host limits: a version 2 group and its parents count, each less what its file cache gives back") {
  FakeRoot root;
  root.write("proc/self/cgroup", "0::/slurm/job_7/step_0\n");
  const std::string below = "sys/fs/cgroup/slurm/job_7";
  root.write(below + "/step_0/memory.max", "max\n");
  root.write(below + "/step_0/memory.current", "1\n");
  root.write(below + "/memory.max", "8000\n");
  root.write(below + "/memory.current", "3000\n");
  root.write(below + "/memory.stat", "anon 5\nfile 999\ninactive_file 1200\nactive_file 1\n");
  root.write("sys/fs/cgroup/slurm/memory.max", "20000\n");
  root.write("sys/fs/cgroup/slurm/memory.current", "19000\n");
  const std::vector<CgroupMemory> expected{
      {root.path() + "/sys/fs/cgroup/slurm/job_7/memory.max", {8000}, {1800}},
      {root.path() + "/sys/fs/cgroup/slurm/memory.max", {20000}, {19000}},
  };
  const HostLimits limits = read_host_limits(root.path());
  CHECK(limits.cgroups == expected);
  REQUIRE(tightest(limits) != nullptr);
  CHECK(tightest(limits)->left() == Bytes{1000});  // a parent's
}

TEST_CASE("host limits: version 1, in a container that sees only its own group at the mount point") {
  FakeRoot root;
  root.write("proc/self/cgroup", "12:cpu,cpuacct:/docker/abc\n5:memory:/docker/abc\nnonsense\n1:name=systemd:/\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "5000\n");
  root.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "700\n");
  root.write("sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 200\n");
  const HostLimits limits = read_host_limits(root.path());
  REQUIRE(limits.cgroups.size() == 1);
  CHECK(limits.cgroups[0].limit == Bytes{5000});
  CHECK(limits.cgroups[0].used == Bytes{500});
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");  // its word for none
  CHECK(read_host_limits(root.path()).cgroups.empty());
}

TEST_CASE("host limits: a group's limit refuses, with amount, limit and cure") {
  HostLimits limits;
  limits.cgroups = {{"/sys/fs/cgroup/memory.max", 10_GiB, 4_GiB}};
  CHECK(judge_host_memory(4_GiB, 2_GiB, limits).refusal.empty());
  const std::string refusal = judge_host_memory(4_GiB, {(2_GiB).value + 1}, limits).refusal;
  CAPTURE(refusal);
  CHECK(has(refusal, "6.000 GiB of host memory (4.000 GiB pinned)"));
  CHECK(has(refusal, "has 6.000 GiB left (/sys/fs/cgroup/memory.max allows 10.00 GiB, 4.000 GiB are used)"));
  CHECK(has(refusal, "--mem"));
}

TEST_CASE("host limits: too little memory refuses on bare metal and is a remark where a machine may grow") {
  HostLimits limits;
  limits.total = 64_GiB;
  limits.available = 30_GiB;
  CHECK(judge_host_memory(30_GiB, 0_GiB, limits).remark.empty());
  CHECK(has(judge_host_memory(40_GiB, 0_GiB, limits).remark, "30.00 GiB are available now"));
  CHECK(judge_host_memory(40_GiB, 0_GiB, limits).refusal.empty());
  CHECK(has(judge_host_memory(65_GiB, 0_GiB, limits).refusal, "64.00 GiB in all (MemTotal)"));
  limits.virtual_machine = true;
  CHECK(judge_host_memory(65_GiB, 0_GiB, limits).refusal.empty());
  CHECK(has(judge_host_memory(65_GiB, 0_GiB, limits).remark, "may be given more"));
  CHECK(judge_host_memory(0_GiB, 0_GiB, HostLimits{.available = Bytes{0}}).remark.empty());
}

TEST_CASE("host limits: a failure to pin names the limit on locked memory, and its cure where it is too small") {
  HostLimits limits;
  limits.available = 30_GiB;
  limits.memlock = 8_MiB;
  CHECK(has(explain_pin_failure(1_GiB, limits), "8.000 MiB (ulimit -l)"));
  CHECK(has(explain_pin_failure(1_GiB, limits), "ulimit -l unlimited"));
  CHECK_FALSE(has(explain_pin_failure(4_MiB, limits), "unlimited"));
}

TEST_CASE("pieces: parts cover a range in order, and none crosses a border") {
  for (const std::int64_t at : {0, 1, 9, 10, 11, 25}) {
    for (const std::int64_t bytes : {0, 1, 9, 10, 11, 30, 37}) {
      std::int64_t next = at;
      for_each_piece(
          Bytes{at}, Bytes{bytes},
          [&](Bytes begin, Bytes part) {
            REQUIRE(begin.value == next);
            REQUIRE(part.value > 0);
            REQUIRE(begin.value / 10 == (begin.value + part.value - 1) / 10);
            next += part.value;
          },
          Bytes{10});
      REQUIRE(next == at + bytes);
    }
  }
}

TEST_CASE("NUMA: a device's node is read from sysfs by its bus id in lower case; -1 means none") {
  FakeRoot root;
  root.write("sys/bus/pci/devices/0000:1b:00.0/numa_node", "1\n");
  root.write("sys/bus/pci/devices/0000:2b:00.0/numa_node", "-1\n");
  CHECK(numa_node_of("0000:1B:00.0", root.path()) == 1);
  CHECK_FALSE(numa_node_of("0000:2b:00.0", root.path()));
  CHECK_FALSE(numa_node_of("0000:3b:00.0", root.path()));
}
