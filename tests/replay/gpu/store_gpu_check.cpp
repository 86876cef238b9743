// What replay stands on, on a real GPU: pinned host memory, device memory in both backings, NCCL. No ctest, since it
// needs a GPU: run bin/store_gpu_check by hand; it says what it saw and ends with 1 if something is wrong.
// An argument is the size of the host store in GiB (default 4).
#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include "models/errors.hpp"
#include "models/quantity_text.hpp"
#include "replay/cuda.hpp"
#include "replay/device_memory.hpp"
#include "replay/execute.hpp"
#include "replay/host_store.hpp"
#include "replay/host_store_pieces.hpp"
#include "replay/nccl.hpp"
#include "replay/numa.hpp"
#include "replay/preflight.hpp"

using namespace ebb;
using namespace ebb::replay;

namespace {

int failures = 0;

void expect(bool ok, const char* what) {
  std::printf("%s %s\n", ok ? "  ok  " : " WRONG", what);
  if (!ok) ++failures;
}

double seconds_of(const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::int64_t free_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return static_cast<std::int64_t>(free);
}

Machine show_machine() {
  const Machine machine = read_machine({});
  std::printf("driver %d, runtime %d, problem '%s', virtual %d\n", machine.driver, machine.runtime,
              machine.problem.c_str(), machine.host.virtual_machine);
  for (const Gpu& gpu : machine.devices) {
    std::printf("  %s, capability %d.%d, %s free of %s\n", gpu.name.c_str(), gpu.capability.major, gpu.capability.minor,
                format_bytes(gpu.free).c_str(), format_bytes(gpu.total).c_str());
  }
  const auto text = [](const std::optional<Bytes>& bytes) { return bytes ? format_bytes(*bytes) : "unknown"; };
  std::printf("  MemTotal %s, MemAvailable %s, memlock %s\n", text(machine.host.total).c_str(),
              text(machine.host.available).c_str(), text(machine.host.memlock).c_str());
  for (const CgroupMemory& group : machine.host.cgroups) {
    std::printf("  %s: %s, used %s\n", group.file.c_str(), format_bytes(group.limit).c_str(),
                format_bytes(group.used).c_str());
  }
  Needs needs;
  needs.ranks.push_back({.rank = 0, .device = 0, .buffers = 1_GiB});
  check_devices(needs, machine, compiled_for());
  return machine;
}

void check_host_store(std::int64_t gib) {
  const Bytes bytes{(gib << 30) + 4096};
  HostStore store;
  const double made = seconds_of([&] { store = HostStore({.pinned = bytes, .pageable = 64_MiB, .device = 0}); });
  std::printf("host store of %s: %.2f s, %.2f s a GiB\n", format_bytes(bytes).c_str(), made,
              made / static_cast<double>(gib));
  for (const std::string& remark : store.remarks()) std::printf("  remark: %s\n", remark.c_str());
  const auto node = numa_node_of(pci_bus_id(0));
  std::printf("  NUMA node of device 0: %d\n", node.value_or(-1));
  const DeviceBytes device = make_device_bytes(1_GiB);
  const replay::Stream stream = make_stream();
  auto* on = static_cast<cudaStream_t>(stream.get());
  const auto copy_all = [&](bool to_device) {
    for (std::int64_t at = 0; at + (1 << 30) <= bytes.value; at += 1 << 30) {
      for_each_piece({at}, 1_GiB, [&](Bytes from, Bytes part) {
        auto* there = static_cast<std::byte*>(device.get()) + (from.value - at);
        auto* here = store.pinned() + from.value;
        check(cudaMemcpyAsync(to_device ? there : here, to_device ? here : there, static_cast<std::size_t>(part.value),
                              cudaMemcpyDefault, on),
              "cudaMemcpyAsync");
      });
    }
    check(cudaStreamSynchronize(on), "cudaStreamSynchronize");
  };
  for (std::int64_t at = 0; at < bytes.value; at += 1 << 20) std::memcpy(store.pinned() + at, &at, sizeof(at));
  copy_all(true);
  for (const bool in : {true, false}) {
    const double took = seconds_of([&] { copy_all(in); });
    std::printf("  %s: %.2f GB/s\n", in ? "to the device" : "to the host", static_cast<double>(gib << 30) / took / 1e9);
  }
  const std::int64_t last = (gib - 1) << 30;
  std::int64_t read = -1;
  std::memcpy(&read, store.pinned() + (5 << 20), sizeof(read));
  expect(read == last + (5 << 20), "what went to the device last came back everywhere");
  expect(store.pinned()[bytes.value - 1] == std::byte{0} && store.pageable()[100] == std::byte{0},
         "fresh pages are zero");
}

/// For the record: does one copy across two registrations side by side work?
void look_at_border() {
  constexpr std::size_t kHalf = std::size_t{2} << 20;
  void* host = mmap(nullptr, 2 * kHalf, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* begin = static_cast<std::byte*>(host);
  std::memset(host, 1, 2 * kHalf);
  check(cudaHostRegister(begin, kHalf, cudaHostRegisterPortable), "cudaHostRegister");
  check(cudaHostRegister(begin + kHalf, kHalf, cudaHostRegisterPortable), "cudaHostRegister");
  const DeviceBytes device = make_device_bytes({2 * kHalf});
  cudaError_t result = cudaMemcpyAsync(device.get(), host, 2 * kHalf, cudaMemcpyHostToDevice, nullptr);
  if (result == cudaSuccess) result = cudaDeviceSynchronize();
  std::printf("one copy across two registrations: %s\n", cudaGetErrorName(result));
  (void)cudaGetLastError();
  check(cudaHostUnregister(begin), "cudaHostUnregister");
  check(cudaHostUnregister(begin + kHalf), "cudaHostUnregister");
  munmap(host, 2 * kHalf);
}

/// A plan of buffers alone: `sizes` in MiB, the first one initial.
Plan plan_of(const std::vector<std::int64_t>& sizes, bool packed) {
  Plan plan;
  plan.streams = {{"compute", StreamKind::compute}};
  for (const std::int64_t size : sizes) {
    Buffer buffer;
    buffer.bytes = {size << 20};
    buffer.initial = plan.buffers.empty();
    buffer.packed = packed;
    plan.buffers.push_back(buffer);
    if (buffer.initial) continue;
    Op op;
    op.kind = OpKind::allocate;
    op.stream = {0};
    op.buffer = {static_cast<std::uint32_t>(plan.buffers.size() - 1)};
    plan.ops.push_back(op);
  }
  return plan;
}

Program program_of(const Plan& plan) {
  Program program;
  program.plan = &plan;
  program.tensors.assign(plan.buffers.size(), 1);
  return program;
}

void check_backing(bool packed) {
  std::printf("%s backing\n", packed ? "arena" : "caching");
  const std::int64_t before = free_bytes();
  {
    const Plan plan = plan_of({100, 7, 300, 1}, packed);
    const Program program = program_of(plan);
    int calls = 0;
    DeviceMemory memory(program, {.before_driver_call = [&calls] { ++calls; }});
    for (std::uint32_t b = 1; b < 4; ++b) memory.allocate({b});
    for (std::uint32_t b = 0; b < 4; ++b) {
      check(cudaMemset(memory.at({b}), static_cast<int>(b + 1), static_cast<std::size_t>(plan.buffers[b].bytes.value)),
            "cudaMemset");
    }
    bool intact = true;
    for (std::uint32_t b = 0; b < 4; ++b) {
      std::vector<unsigned char> bytes(static_cast<std::size_t>(plan.buffers[b].bytes.value));
      check(cudaMemcpy(bytes.data(), memory.at({b}), bytes.size(), cudaMemcpyDefault), "cudaMemcpy");
      for (const unsigned char c : bytes) intact = intact && c == b + 1;
    }
    expect(intact, "no buffer overwrites another");
    expect(memory.live() == Bytes{408LL << 20} && memory.peak_live() == memory.live(), "live bytes are the plan's");
    expect(memory.reserved() == device_bytes_needed(program), "it reserves what preflight asks for");
    expect(packed == (calls == 0), "only segments go to the driver while a step runs");
    expect(memory.driver_peak().value >= memory.reserved().value, "the driver counts it");
    std::printf("  reserved %s, torch %s of %s, driver %s\n", format_bytes(memory.reserved()).c_str(),
                format_bytes(memory.torch_allocated_peak()).c_str(), format_bytes(memory.torch_reserved_peak()).c_str(),
                format_bytes(memory.driver_peak()).c_str());
    void* const was = memory.at({2});
    memory.release({2});
    expect(memory.at({2}) == nullptr && memory.allocate({2}) == was, "a buffer that returns gets its storage again");
  }
  expect(free_bytes() >= before - (64 << 20), "nothing stays allocated");
}

/// Two plans of one life: what is alive stays where it is under its new number, and no byte of it changes.
void check_take_up(bool packed) {
  Plan first = plan_of({100, 7, 300, 1}, packed);
  Plan next = plan_of({50, 300, 20, 100}, packed);
  const char* names[] = {"a", "b", "c", "d"};
  for (std::size_t b = 0; b < 4; ++b) first.buffers[b].name = names[b];
  const char* later[] = {"e", "c", "f", "a"};
  for (std::size_t b = 0; b < 4; ++b) next.buffers[b].name = later[b];
  for (std::size_t b = 0; b < 4; ++b) next.buffers[b].initial = b == 1 || b == 3;
  first.part = LifePart::init;
  std::erase_if(next.ops, [&](const Op& op) { return op.buffer.index == 1 || op.buffer.index == 3; });
  next.ops.push_back({.kind = OpKind::allocate, .stream = {0}, .buffer = {0}});  // which plan_of() takes to be initial
  const Program before = program_of(first);
  const Program after = program_of(next);
  const std::vector<const Program*> both = {&before, &after};
  DeviceMemory memory(both);
  memory.allocate({2});
  void* const a = memory.at({0});
  void* const c = memory.at({2});
  check(cudaMemset(c, 77, 300 << 20), "cudaMemset");
  memory.take_up(1, Carry::between_parts);
  expect(memory.at({3}) == a && memory.at({1}) == c, "live buffers stay where they are");
  expect(memory.at({0}) == nullptr && memory.at({2}) == nullptr, "what is not alive is nowhere");
  memory.allocate({2});
  memory.allocate({0});
  check(cudaMemset(memory.at({2}), 1, 20 << 20), "cudaMemset");
  check(cudaMemset(memory.at({0}), 2, 50 << 20), "cudaMemset");
  std::vector<unsigned char> bytes(300 << 20);
  check(cudaMemcpy(bytes.data(), c, bytes.size(), cudaMemcpyDefault), "cudaMemcpy");
  bool intact = true;
  for (const unsigned char byte : bytes) intact = intact && byte == 77;
  expect(intact, "what the next plan allocates lies beside them");
  expect(memory.live() == Bytes{470LL << 20}, "live bytes go on");
}

/// A device that is full of cache gives it back; one that has too little says so.
void check_retry() {
  const std::int64_t most = free_bytes() >> 20;
  const Plan plan = plan_of({10, most * 6 / 10, most * 7 / 10, most * 2}, false);
  DeviceMemory memory(program_of(plan));
  memory.allocate({1});
  memory.release({1});
  expect(memory.allocate({2}) != nullptr, "the cache goes back when the device is full");
  try {
    memory.allocate({3});
    expect(false, "too much is refused");
  } catch (const InputError& error) {
    std::printf("  %s\n", error.what());
    expect(true, "too much is refused");
  }
}

/// Each rank has the largest of some numbers, nan and inf among them; and bytes are gathered as they are.
bool largest_and_bytes(NcclComm& comm, int rank, int devices, void* stream) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const bool last = rank == devices - 1;
  std::vector<float> numbers = {last ? 3.0F : 2.0F, rank == 0 ? kNan : kInf, last ? kInf : 1.0F, 0.0F};
  const std::size_t bytes = numbers.size() * sizeof(float);
  const DeviceBytes data = make_device_bytes({static_cast<std::int64_t>(bytes)});
  check(cudaMemcpy(data.get(), numbers.data(), bytes, cudaMemcpyDefault), "cudaMemcpy");
  comm.all_reduce_max(data.get(), {4}, stream);
  std::vector<unsigned char> part(static_cast<std::size_t>(devices) * 5, static_cast<unsigned char>(200 + rank));
  const DeviceBytes parts = make_device_bytes({static_cast<std::int64_t>(part.size())});
  check(cudaMemcpy(parts.get(), part.data(), part.size(), cudaMemcpyDefault), "cudaMemcpy");
  comm.all_gather_bytes(parts.get(), {5}, stream);
  check(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "cudaStreamSynchronize");
  check(cudaMemcpy(numbers.data(), data.get(), bytes, cudaMemcpyDefault), "cudaMemcpy");
  check(cudaMemcpy(part.data(), parts.get(), part.size(), cudaMemcpyDefault), "cudaMemcpy");
  bool ok = numbers[0] == 3.0F && std::isnan(numbers[1]) && numbers[2] == kInf && numbers[3] == 0.0F;
  for (std::size_t i = 0; i < part.size(); ++i) ok = ok && part[i] == 200 + i / 5;
  return ok;
}

void check_nccl(int devices) {
  load_nccl();
  std::printf("NCCL %s on %d devices\n", nccl_version().c_str(), devices);
  const NcclId id = new_nccl_id();
  constexpr std::int64_t kPart = 1 << 20;
  std::vector<int> right(static_cast<std::size_t>(devices), 0);
  std::vector<int> right_largest(static_cast<std::size_t>(devices), 0);
  const auto body = [&](int rank) {
    set_device(rank);
    NcclComm comm(id, rank, devices);
    const replay::Stream stream = make_stream();
    std::vector<float> host(static_cast<std::size_t>(kPart * devices), static_cast<float>(rank + 1));
    const std::size_t bytes = host.size() * sizeof(float);
    const DeviceBytes data = make_device_bytes({static_cast<std::int64_t>(bytes)});
    check(cudaMemcpy(data.get(), host.data(), bytes, cudaMemcpyDefault), "cudaMemcpy");
    NcclGroup group;
    comm.reduce_scatter(data.get(), {kPart}, Dtype::fp32, stream.get());
    group.end();
    comm.all_gather(data.get(), {kPart}, Dtype::fp32, stream.get());
    comm.all_reduce(data.get(), {kPart * devices}, Dtype::fp32, stream.get());
    check(cudaStreamSynchronize(static_cast<cudaStream_t>(stream.get())), "cudaStreamSynchronize");
    comm.check();
    check(cudaMemcpy(host.data(), data.get(), bytes, cudaMemcpyDefault), "cudaMemcpy");
    right_largest[static_cast<std::size_t>(rank)] = largest_and_bytes(comm, rank, devices, stream.get());
    const auto sum = static_cast<float>(devices * (devices + 1) / 2 * devices);
    bool ok = true;
    for (const float value : host) ok = ok && value == sum;
    right[static_cast<std::size_t>(rank)] = ok;
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < devices; ++rank)
      threads.emplace_back([&body, rank] {
        try {
          body(rank);
        } catch (const std::exception& error) {
          std::printf("  rank %d: %s\n", rank, error.what());
        }
      });
  }
  for (const int ok : right_largest) expect(ok != 0, "the largest wins, nan before all, and bytes are gathered");
  for (const int ok : right) expect(ok != 0, "reduce-scatter, all-gather and all-reduce give the sum");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Machine machine = show_machine();
    check_host_store(argc > 1 ? std::atoll(argv[1]) : 4);
    look_at_border();
    check_backing(false);
    check_backing(true);
    check_take_up(false);
    check_take_up(true);
    check_retry();
    check_nccl(static_cast<int>(machine.devices.size()));
  } catch (const std::exception& error) {
    std::printf("error: %s\n", error.what());
    return 3;
  }
  std::printf("%d wrong\n", failures);
  return failures == 0 ? 0 : 1;
}
