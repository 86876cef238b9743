// Host memory that watches what is left while it is filled.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>

#include "models/errors.hpp"
#include "replay/host_store_region.hpp"
#include "tests/catch.hpp"

using namespace ebb;
using namespace ebb::replay;

namespace {

/// Resident bytes of this process, as the kernel counts them.
std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total = 0;
  std::int64_t resident = 0;
  file >> total >> resident;
  return resident * 4096;
}

}  // namespace

TEST_CASE("host region: all pages are there, zero, and gone with the object") {
  constexpr std::int64_t kBytes = (48 << 20) + 12345;
  const std::int64_t before = resident_bytes();
  {
    const HostRegion region(
        {kBytes}, {.node = {}, .threads = 3, .step = 20_MiB, .keep = {0}, .limits = [] { return HostLimits{}; }});
    CHECK(resident_bytes() - before > kBytes - (4 << 20));
    CHECK(region.bytes() == Bytes{kBytes});
    CHECK(std::all_of(region.data(), region.data() + kBytes, [](std::byte b) { return b == std::byte{0}; }));
    region.data()[kBytes - 1] = std::byte{1};
  }
  CHECK(resident_bytes() - before < kBytes / 4);  // threads' stacks, and what a sanitizer keeps, may stay
  CHECK(HostRegion({0}, {}).data() == nullptr);
}

TEST_CASE("host region: it goes on when a machine that was short of memory has grown") {
  int looks = 0;
  FillOptions options{.step = 16_MiB, .keep = 1_MiB};
  options.limits = [&looks] {
    ++looks;
    HostLimits limits;
    limits.available = looks < 4 ? 2_MiB : 20_MiB;
    return limits;
  };
  CHECK(HostRegion(32_MiB, options).bytes() == 32_MiB);
  CHECK(looks == 5);  // four for the first step, one for the second
}

TEST_CASE("host region: where nothing comes it says how far it got, and keeps nothing") {
  const std::int64_t before = resident_bytes();
  int looks = 0;
  FillOptions options{.step = 16_MiB, .keep = 1_MiB, .patience = {0.05}};
  options.limits = [&looks] {
    HostLimits limits;
    limits.available = 64_GiB;
    limits.cgroups = {{"/sys/fs/cgroup/memory.max", 40_MiB, looks++ < 2 ? 0_MiB : 32_MiB}};
    return limits;
  };
  try {
    const HostRegion region(64_MiB, options);
    FAIL("no error");
  } catch (const IoError& error) {
    const std::string what = error.what();
    CAPTURE(what);
    CHECK(what.find("ran out after 32.00 MiB of 64.00 MiB") != std::string::npos);
    CHECK(what.find("8.000 MiB left (/sys/fs/cgroup/memory.max)") != std::string::npos);
  }
  // It had 32 MiB. A sanitizer's shadow of them, an eighth, may stay.
  CHECK(resident_bytes() - before < (8 << 20));
}
