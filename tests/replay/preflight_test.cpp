// Preflight: what is said to a machine that cannot run a plan, decided on made-up machines.
#include "replay/preflight.hpp"

#include <string>

#include "models/errors.hpp"
#include "replay/execute.hpp"
#include "tests/catch.hpp"

using namespace ebb;
using namespace ebb::replay;

namespace {

Machine h200s(int count) {
  Machine machine;
  machine.driver = 13000;
  machine.runtime = 13000;
  for (int i = 0; i < count; ++i) machine.devices.push_back({"NVIDIA H200", {9, 0}, 140_GiB, 138_GiB});
  return machine;
}

Needs needs(int ranks) {
  Needs all;
  all.keep_free = 1_GiB;
  all.file = "plan.json";
  for (int i = 0; i < ranks; ++i) all.ranks.push_back({i, i, 100_GiB, 2_GiB, 50_GiB, 10_GiB});
  return all;
}

template <class Error, class Call>
void check_error(const Call& call, const std::string& part) {
  try {
    call();
    FAIL("no error");
  } catch (const Error& error) {
    const std::string what = error.what();
    CAPTURE(what);
    CHECK(what.find(part) != std::string::npos);
  }
}

const CompiledFor kUsual = compiled_for("80-real;90-real;100-real;100-virtual");

}  // namespace

TEST_CASE("preflight: CMake's architectures say which GPUs have code") {
  CHECK(kUsual.code == std::vector<ComputeCapability>{{8, 0}, {9, 0}, {10, 0}});
  CHECK(kUsual.ptx == std::vector<ComputeCapability>{{10, 0}});
  CHECK(runs_on(kUsual, {8, 6}));  // code of 8.0
  CHECK(runs_on(kUsual, {9, 0}));
  CHECK(runs_on(kUsual, {10, 3}));
  CHECK(runs_on(kUsual, {12, 0}));  // from PTX
  CHECK_FALSE(runs_on(kUsual, {7, 5}));
  CHECK(compiled_for("80-real,90-real,100-real,100-virtual").code == kUsual.code);
  const CompiledFor one = compiled_for("90");
  CHECK(one.code == one.ptx);
  CHECK(one.code == std::vector<ComputeCapability>{{9, 0}});
  CHECK_FALSE(runs_on(compiled_for("90-real"), {10, 0}));
  CHECK_FALSE(runs_on(compiled_for(""), {9, 0}));
}

TEST_CASE("preflight: an environment without CUDA that works is the environment's error") {
  const auto check = [](const Machine& machine, const CompiledFor& compiled) {
    return [&machine, &compiled] { check_devices(needs(1), machine, compiled); };
  };
  Machine machine = h200s(1);
  CHECK_NOTHROW(check_devices(needs(1), machine, kUsual));
  machine.runtime = 13010;  // a minor version more than the driver's
  CHECK_NOTHROW(check_devices(needs(1), machine, kUsual));
  machine.driver = 12080;
  check_error<CudaError>(check(machine, kUsual), "knows CUDA up to 12.8, and this was built with CUDA 13.1");
  machine.driver = 0;
  check_error<CudaError>(check(machine, kUsual), "no NVIDIA driver");
  machine = h200s(0);
  check_error<CudaError>(check(machine, kUsual), "CUDA_VISIBLE_DEVICES");
  machine = h200s(1);
  machine.problem = "cudaMemGetInfo: something";
  check_error<CudaError>(check(machine, kUsual), "cudaMemGetInfo: something");
  machine = h200s(1);
  const CompiledFor other = compiled_for("80-real;100-virtual");
  check_error<CudaError>(check(machine, other),
                         "compute capability 9.0, and this was built for 8.0, 10.0 and newer; build with cmake -D "
                         "CMAKE_CUDA_ARCHITECTURES=90");
}

TEST_CASE("preflight: a plan for more GPUs than there are is the user's error") {
  check_error<InputError>([] { check_devices(needs(4), h200s(2), kUsual); },
                          "plan.json: 4 ranks want devices up to number 3, and 2 are visible");
}

TEST_CASE("preflight: device memory counts buffers, instruments and what must stay free, of all ranks on a device") {
  Machine machine = h200s(2);
  CHECK(check_memory(needs(2), machine).empty());
  machine.devices[1].free = 103_GiB;
  CHECK_NOTHROW(check_memory(needs(2), machine));
  machine.devices[1].free.value -= 1;
  check_error<InputError>([&] { check_memory(needs(2), machine); },
                          "rank 1 needs 103.0 GiB of device memory (100.0 GiB for the plan, 2.000 GiB for replay's "
                          "instruments, 1.000 GiB to stay free), and device 1 (NVIDIA H200) has 103.0 GiB free of "
                          "140.0 GiB; end what else runs");
  Needs shared = needs(2);
  shared.ranks[1].device = 0;
  check_error<InputError>([&] { check_memory(shared, h200s(2)); }, "rank 0, 1 needs 205.0 GiB");
}

TEST_CASE("preflight: host memory counts the pinned and pageable bytes of all ranks") {
  Machine machine = h200s(2);
  machine.host.cgroups = {{"/sys/fs/cgroup/memory.max", 120_GiB, 0_GiB}};
  machine.host.available = 119_GiB;
  const auto remarks = check_memory(needs(2), machine);
  REQUIRE(remarks.size() == 1);
  CHECK(remarks[0].find("120.0 GiB of host memory (100.0 GiB pinned)") != std::string::npos);
  machine.host.cgroups[0].used = {1};
  check_error<InputError>([&] { check_memory(needs(2), machine); }, "plan.json: 120.0 GiB of host memory");
}
