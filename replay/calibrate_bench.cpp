#include "replay/calibrate_bench.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "kernels/elementwise.hpp"
#include "models/errors.hpp"
#include "models/quantity_text.hpp"
#include "replay/execute.hpp"
#include "replay/numa.hpp"
#include "replay/run_facts.hpp"

namespace ebb::replay {
namespace {

constexpr Bytes kBlock = 8_GiB;
constexpr Bytes kLeastBlock = 1_GiB;
/// As much as a job's state, since hosts slow down with what the link walks over; with many GPUs half of it, or pinning
/// would take the minute. A host with less room gets kLeastPinned, more than any last-level cache.
constexpr Bytes kPinned = 16_GiB;
constexpr Bytes kLeastPinned = 4_GiB;
constexpr std::size_t kFewGpus = 4;
constexpr Bytes kPageable = 1_GiB;

cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }

std::vector<int> chosen(const MeasureOptions& options) {
  if (!options.devices.empty()) return options.devices;
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  std::vector<int> all(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  return all;
}

bool reach_each_other(const std::vector<BenchGpu>& gpus) {
  for (const BenchGpu& a : gpus) {
    for (const BenchGpu& b : gpus) {
      if (a.device == b.device) continue;
      int can = 0;
      check(cudaDeviceCanAccessPeer(&can, a.device, b.device), "cudaDeviceCanAccessPeer");
      if (can == 0) return false;
    }
  }
  return gpus.size() > 1;
}

/// The driver's version, or else the CUDA version that it supports.
std::string driver_text() {
  if (std::string driver = driver_name(); !driver.empty()) return driver;
  int version = 0;
  check(cudaDriverGetVersion(&version), "cudaDriverGetVersion");
  return fmt::format("for CUDA {}", cuda_version_text(version));
}

std::int64_t usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max<std::int64_t>(1, sysconf(_SC_NPROCESSORS_ONLN));
}

}  // namespace

DeviceRoom device_room() {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return {.total = {static_cast<std::int64_t>(total)}, .free = {static_cast<std::int64_t>(free)}};
}

void record(const Event& event, void* stream) {
  check(cudaEventRecord(static_cast<cudaEvent_t>(event.get()), stream_of(stream)), "cudaEventRecord");
}
void synchronize(void* stream) { check(cudaStreamSynchronize(stream_of(stream)), "cudaStreamSynchronize"); }

Bench::Bench(const MeasureOptions& options, Setting& setting)
    : repeats_(static_cast<int>(std::clamp(std::lround(options.seconds / 6), 3L, 100L))),
      longer_(std::clamp(options.seconds / 60, 0.25, 10.0)),
      progress_(options.progress) {
  const std::vector<int> devices = chosen(options);
  if (devices.empty()) throw CudaError("there is no GPU to measure; run where one and its driver are");
  for (const int device : devices) {
    BenchGpu gpu;
    gpu.device = device;
    set_device(device);
    const DeviceRoom room = device_room();
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    const std::string name = properties.name;
    if (!setting.gpu.empty() && setting.gpu != name)
      throw InputError({}, fmt::format("the GPUs differ: {} and {}", setting.gpu, name),
                       "calibrate GPUs of one kind: --devices 0,1");
    setting.gpu = name;
    setting.memory = room.total;
    setting.context = std::max(setting.context, room.total - room.free);
    gpu.node = numa_node_of(pci_bus_id(device));
    gpus_.push_back(std::move(gpu));
  }
  setting.gpus = static_cast<std::int64_t>(gpus_.size());
  setting.driver = driver_text();
  int runtime = 0;
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  setting.cuda = cuda_version_text(runtime);
  setting.date = options.date;
  setting.command = options.command;
  setting.host_memory = {sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE)};
  setting.host_threads = usable_cpus();
  setting.peers = reach_each_other(gpus_);
  const Bytes pinned = gpus_.size() <= kFewGpus ? kPinned : Bytes{kPinned.value / 2};
  set_device(gpus_.front().device);
  gate_.emplace();
  for (BenchGpu& gpu : gpus_) make_gpu(gpu, pinned);
}

void Bench::make_gpu(BenchGpu& gpu, Bytes pinned) {
  set_device(gpu.device);
  say(fmt::format("GPU {}: {} of device and {} of pinned memory", gpu.device, format_bytes(kBlock),
                  format_bytes(pinned)));
  gpu.in = make_stream();
  gpu.out = make_stream();
  gpu.compute = make_stream();
  gpu.block_bytes = kBlock;
  const Bytes free = device_room().free;
  while (gpu.block_bytes.value > free.value / 4 * 3) gpu.block_bytes.value /= 2;
  if (gpu.block_bytes < kLeastBlock)
    throw CudaError(fmt::format("device {} has {} free; calibrating needs {} or more", gpu.device, format_bytes(free),
                                format_bytes(kLeastBlock)));
  gpu.block = make_device_bytes(gpu.block_bytes);
  const kernels::Run all{.offset = 0, .index = 0, .numel = gpu.block_bytes.value / 4};
  check(kernels::launch_fill_random(kernels::Type::fp32, gpu.block.get(), {&all, 1}, 1, 1e-2F, gpu.compute.get()),
        "launch_fill_random");
  try {
    gpu.host.emplace(HostStoreOptions{.pinned = pinned, .pageable = kPageable, .device = gpu.device});
  } catch (const IoError&) {
    if (pinned <= kLeastPinned) throw;
    say(fmt::format("no room for that; {} instead", format_bytes(kLeastPinned)));
    pinned = kLeastPinned;
    gpu.host.emplace(HostStoreOptions{.pinned = pinned, .pageable = kPageable, .device = gpu.device});
  }
  for (const std::string& said : gpu.host->remarks()) say(said);
  synchronize(gpu.compute.get());
  for (Bytes at{0}; at < pinned; at += gpu.block_bytes) {
    const auto bytes = static_cast<std::size_t>(std::min(gpu.block_bytes, pinned - at).value);
    check(cudaMemcpyAsync(gpu.host->pinned() + at.value, gpu.block.get(), bytes, cudaMemcpyDeviceToHost,
                          stream_of(gpu.out.get())),
          "cudaMemcpyAsync");
  }
  synchronize(gpu.out.get());
}

double Bench::burst(void* stream, int calls, const std::function<void(int)>& enqueue) {
  const Event begin = make_event(true);
  const Event end = make_event(true);
  const int step = next_step();
  gate_->hold(step, stream);
  enqueue(0);
  record(begin, stream);
  for (int i = 1; i <= calls; ++i) enqueue(i);
  record(end, stream);
  gate_->open(step);
  synchronize(stream);
  if (gate_->timed_out()) throw CudaError("the gate before a measurement opened by itself: the device's queue is full");
  return static_cast<double>(elapsed_ms(begin, end)) / 1e3;
}

Timed Bench::timed_burst(void* stream, int calls, const std::function<void(int)>& enqueue) {
  std::vector<double> each;
  enqueue(0);
  synchronize(stream);
  burst(stream, calls, enqueue);
  for (int i = 0; i < repeats(); ++i) each.push_back(burst(stream, calls, enqueue) / calls);
  return timed(std::move(each));
}

CopyFlow::CopyFlow(const BenchGpu& gpu, bool to_device, Bytes bytes, std::int64_t count)
    : gpu_(gpu),
      to_device_(to_device),
      bytes_(bytes),
      count_(count),
      every_(std::max<std::int64_t>(1, count / 256)),
      begin_(make_event(true)) {
  EBB_ASSERT(4 * bytes.value <= gpu.block_bytes.value && 4 * bytes.value <= gpu.host->pinned_bytes().value);
  for (std::int64_t i = 0; i < count_ / every_; ++i) marks_.push_back(make_event(true));
}

void* CopyFlow::stream() const { return to_device_ ? gpu_.in.get() : gpu_.out.get(); }

void CopyFlow::begin() { record(begin_, stream()); }

// Four slots on the device, two for each way; in the host's memory the way out is two places behind the way in.
void CopyFlow::enqueue(std::int64_t until) {
  const std::int64_t places = gpu_.host->pinned_bytes().value / bytes_.value;
  for (; done_ < std::min(until, count_); ++done_) {
    const std::int64_t place = (done_ + (to_device_ ? 0 : places - 2)) % places;
    std::byte* host = gpu_.host->pinned() + place * bytes_.value;
    std::byte* device = gpu_.at({(done_ % 2 + (to_device_ ? 0 : 2)) * bytes_.value});
    check(
        cudaMemcpyAsync(to_device_ ? device : host, to_device_ ? host : device, static_cast<std::size_t>(bytes_.value),
                        to_device_ ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, stream_of(stream())),
        "cudaMemcpyAsync");
    if ((done_ + 1) % every_ == 0) record(marks_[static_cast<std::size_t>(done_ / every_)], stream());
  }
}

double CopyFlow::since_begin(const Event& event) const { return static_cast<double>(elapsed_ms(begin_, event)) / 1e3; }

std::vector<double> CopyFlow::marks() const {
  std::vector<double> times;
  for (const Event& mark : marks_) times.push_back(since_begin(mark));
  return times;
}

}  // namespace ebb::replay
