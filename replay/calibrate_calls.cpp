// What calls cost the host thread that makes them, and Adam on the host.
//
// Each is timed by the host's clock over a batch that fits in the stream's queue: a full queue would let the host wait
// for the device. Between batches the device comes to rest.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <thread>

#include "kernels/adamw.hpp"
#include "kernels/elementwise.hpp"
#include "models/memory/caching_allocator.hpp"
#include "replay/barrier.hpp"
#include "replay/calibrate_bench.hpp"
#include "replay/host_adam.hpp"

namespace ebb::replay {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

constexpr int kBatch = 128;
constexpr int kManyRuns = 300;
/// Batches of calls are short and noisy: more of them.
constexpr int kMoreRepeats = 4;

/// The median of host times of one call. `rest` brings the device to rest after a batch and is not timed.
Timed host_time(const Bench& bench, int calls, const std::function<void(int)>& call,
                const std::function<void()>& rest) {
  std::vector<double> each;
  for (int repeat = 0; repeat <= kMoreRepeats * bench.repeats(); ++repeat) {
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i) call(i);
    const double seconds = since(begin);
    rest();
    if (repeat > 0) each.push_back(seconds / calls);
  }
  return timed(std::move(each));
}

void device_calls(Bench& bench, const BenchGpu& gpu, CalibrationData& data) {
  void* compute = gpu.compute.get();
  void* in = gpu.in.get();
  const auto rest = [&] {
    for (void* s : {compute, in, gpu.out.get()}) synchronize(s);
  };
  // A kernel long enough that the launches behind it queue up, as in a step.
  const kernels::Run small{.offset = 0, .index = 0, .numel = 1 << 20};
  const auto launch = [&](int) {
    check(kernels::launch_fill_bytes(kernels::Type::fp32, gpu.array(4), {&small, 1}, 0, compute), "launch_fill_bytes");
  };
  data.calls.push_back({"launch", host_time(bench, kBatch, launch, rest)});

  // A rank's shards in one launch: the table of runs is made and copied.
  std::vector<kernels::Run> many;
  for (int i = 0; i < kManyRuns; ++i) many.push_back({.offset = i * 4096, .index = 0, .numel = 1024});
  const auto launch_many = [&](int) {
    check(kernels::launch_fill_bytes(kernels::Type::fp32, gpu.array(4), many, 0, compute), "launch_fill_bytes");
  };
  data.calls.push_back({"launch_runs", host_time(bench, kBatch, launch_many, rest)});

  const auto copy = [&](int i) {
    check(cudaMemcpyAsync(gpu.at({0}), gpu.host->pinned() + i * (1_MiB).value, static_cast<std::size_t>((1_MiB).value),
                          cudaMemcpyHostToDevice, static_cast<cudaStream_t>(in)),
          "cudaMemcpyAsync");
  };
  data.calls.push_back({"copy", host_time(bench, kBatch, copy, rest)});

  std::vector<Event> events;
  for (int i = 0; i < kBatch; ++i) events.push_back(make_event(false));
  const auto event = [&](int i) {
    const Event& e = events[static_cast<std::size_t>(i)];
    record(e, in);
    check(cudaStreamWaitEvent(static_cast<cudaStream_t>(compute), static_cast<cudaEvent_t>(e.get()), 0),
          "cudaStreamWaitEvent");
  };
  data.calls.push_back({"event", host_time(bench, kBatch, event, rest)});

  const kernels::Run one{.offset = 0, .index = 0, .numel = 1};
  const auto wait = [&](int) {
    check(kernels::launch_fill_bytes(kernels::Type::fp32, gpu.array(4), {&one, 1}, 0, compute), "launch_fill_bytes");
    synchronize(compute);
  };
  data.calls.push_back({"synchronize", host_time(bench, 32, wait, [] {})});
}

/// What it takes the device to hand over from a copy to a kernel to a copy, over streams, as a serial chunk does.
void chain(Bench& bench, const BenchGpu& gpu, CalibrationData& data) {
  constexpr int kCycles = 16;
  const kernels::Run one{.offset = 0, .index = 0, .numel = 1};
  std::vector<Event> events;
  for (int i = 0; i < 3 * (kCycles + 1); ++i) events.push_back(make_event(false));
  int next = 0;
  const auto then = [&](void* from, void* to) {
    const Event& e = events[static_cast<std::size_t>(next++) % events.size()];
    record(e, from);
    check(cudaStreamWaitEvent(static_cast<cudaStream_t>(to), static_cast<cudaEvent_t>(e.get()), 0),
          "cudaStreamWaitEvent");
  };
  const auto copy = [&](bool to_device, void* stream) {
    std::byte* host = gpu.host->pinned() + next % 64 * (1_MiB).value;
    check(cudaMemcpyAsync(
              to_device ? gpu.at({0}) : host, to_device ? host : gpu.at({0}), static_cast<std::size_t>((1_MiB).value),
              to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, static_cast<cudaStream_t>(stream)),
          "cudaMemcpyAsync");
  };
  void* in = gpu.in.get();
  void* out = gpu.out.get();
  void* compute = gpu.compute.get();
  data.calls.push_back({"chain", bench.timed_burst(in, kCycles, [&](int) {
                          copy(true, in);
                          then(in, compute);
                          check(kernels::launch_fill_bytes(kernels::Type::fp32, gpu.array(4), {&one, 1}, 0, compute),
                                "launch_fill_bytes");
                          then(compute, out);
                          copy(false, out);
                          then(out, in);
                        })});
}

/// A plan's buffers come and go in a few sizes; after the first of each the allocator has a block.
void allocations(const Bench& bench, CalibrationData& data) {
  constexpr std::array kSizes = {8_KiB, 1_MiB, 16_MiB, 400_MiB};
  memory::CachingAllocator allocator;
  const auto pair = [&](int i) {
    allocator.free(allocator.allocate(kSizes[static_cast<std::size_t>(i) % kSizes.size()], StreamId{0}));
  };
  data.calls.push_back({"allocate", host_time(bench, 1024, pair, [] {})});
}

/// One thread a GPU, each with its share of the CPUs, as ranks have them; the slowest counts.
void host_adam_all(Bench& bench, CalibrationData& data) {
  constexpr std::int64_t kNumel = std::int64_t{1} << 27;  // a GPU: 2 GiB of state and gradients, 3.8 GB of traffic
  const std::size_t gpus = bench.gpus();
  std::vector<double> slowest(static_cast<std::size_t>(bench.repeats()) + 1, 0.0);
  std::vector<std::int64_t> threads(gpus, 0);
  Barrier barrier(static_cast<int>(gpus));
  std::mutex mutex;
  const auto rank = [&](std::size_t g) {
    const BenchGpu& gpu = bench.gpu(g);
    std::size_t index = 0;
    std::size_t sharers = 0;
    for (std::size_t other = 0; other < gpus; ++other) {
      if (bench.gpu(other).node != gpu.node) continue;
      if (other < g) ++index;
      ++sharers;
    }
    HostPool pool(share_of_cpus(gpu.node.value_or(-1), index, sharers));
    threads[g] = static_cast<std::int64_t>(pool.threads());
    const HostArrays arrays{.grad = gpu.host->pinned(),
                            .exp_avg = gpu.host->pageable(),
                            .exp_avg_sq = gpu.host->pageable() + 4 * kNumel,
                            .master = gpu.host->pinned() + 4 * kNumel};
    std::fill_n(gpu.host->pageable(), 8 * kNumel, std::byte{0});  // moments before the first step
    const kernels::AdamwRun run{.numel = kNumel};
    const kernels::AdamwStep step = kernels::adamw_step({.learning_rate = 1e-5F}, 1000);
    for (double& longest : slowest) {
      barrier.meet();
      const auto begin = Clock::now();
      host_adam(pool, arrays, {&run, 1}, step);
      const double seconds = since(begin);
      const std::lock_guard lock(mutex);
      longest = std::max(longest, seconds);
    }
  };
  {
    std::vector<std::jthread> ranks;
    for (std::size_t g = 0; g < gpus; ++g)
      ranks.emplace_back([&, g] {
        try {
          rank(g);
        } catch (const Stopped&) {  // the error is another's
        } catch (...) {
          barrier.break_with(std::current_exception());
        }
      });
  }
  barrier.rethrow();
  slowest.erase(slowest.begin());
  std::int64_t all = 0;
  for (const std::int64_t t : threads) all += t;
  data.host_adam.push_back(
      {.numel = {kNumel * static_cast<std::int64_t>(gpus)}, .threads = all, .each = timed(std::move(slowest))});
}

}  // namespace

void measure_calls(Bench& bench, CalibrationData& data) {
  bench.say("host calls");
  set_device(bench.gpu(0).device);
  device_calls(bench, bench.gpu(0), data);
  chain(bench, bench.gpu(0), data);
  allocations(bench, data);
  bench.say("Adam on the host");
  host_adam_all(bench, data);
}

}  // namespace ebb::replay
