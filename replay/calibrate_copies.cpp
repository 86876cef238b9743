// Copies: alone over sizes, both ways together, all GPUs together, from and to pageable memory; and pinning.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>

#include "models/quantity_text.hpp"
#include "replay/calibrate_bench.hpp"
#include "replay/calibrate_fit.hpp"
#include "replay/numa.hpp"

namespace ebb::replay {
namespace {

constexpr std::array kAlone = {16_KiB, 64_KiB, 256_KiB, 1_MiB, 4_MiB, 16_MiB, 64_MiB, 256_MiB, 1_GiB};
// 48 MiB: a slot of 4 Mi elements with fp32 state.
constexpr std::array kTogether = {256_KiB, 1_MiB, 4_MiB, 16_MiB, 48_MiB, 64_MiB, 256_MiB, 1_GiB};
constexpr std::array kAllGpus = {16_MiB, 64_MiB};
/// Each flow moves about that much each way: a quarter of a second on PCIe Gen5.
constexpr Bytes kFlow = 12_GiB;
constexpr int kFlowRepeats = 2;  // in each round
constexpr std::int64_t kMostCopies = 2000;
constexpr std::int64_t kLeastCopies = 12;

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

void copies_alone(Bench& bench, const BenchGpu& gpu, std::size_t index, bool to_device, Bytes bytes,
                  CalibrationData& data) {
  if (4 * bytes.value > std::min(gpu.host->pinned_bytes(), gpu.block_bytes).value) return;
  const auto calls = static_cast<int>(std::clamp<std::int64_t>((1_GiB).value / bytes.value, 2, kAhead));
  const std::int64_t places = gpu.host->pinned_bytes().value / bytes.value;
  void* stream = to_device ? gpu.in.get() : gpu.out.get();
  std::int64_t place = 0;
  const auto enqueue = [&](int i) {
    std::byte* host = gpu.host->pinned() + place++ % places * bytes.value;
    std::byte* device = gpu.at({i % 4 * bytes.value});
    check(
        cudaMemcpyAsync(to_device ? device : host, to_device ? host : device, static_cast<std::size_t>(bytes.value),
                        to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, static_cast<cudaStream_t>(stream)),
        "cudaMemcpyAsync");
  };
  Timed all = bench.timed_burst(stream, calls, enqueue);
  for (double* t : {&all.median, &all.least, &all.most}) *t *= calls;
  data.copies.push_back({.to_device = to_device,
                         .pinned = true,
                         .mixed = false,
                         .gpu = static_cast<std::int64_t>(index),
                         .bytes = bytes,
                         .calls = calls,
                         .all = all});
}

/// Tensors of a layer, as a chunk of whole shards copies them: what latency and rate must explain together.
void mixed_copies(Bench& bench, const BenchGpu& gpu, std::size_t index, bool to_device, CalibrationData& data) {
  constexpr std::array kSizes = {16_KiB, 8_MiB, 16_KiB, 16_MiB, 16_KiB, Bytes{(24_MiB).value - (64_KiB).value},
                                 16_KiB, 16_MiB};
  constexpr Bytes kMean = 8_MiB;
  constexpr int kCalls = 96;
  const std::int64_t room = std::min(gpu.host->pinned_bytes(), gpu.block_bytes).value - (32_MiB).value;
  void* stream = to_device ? gpu.in.get() : gpu.out.get();
  std::int64_t at = 0;
  const auto enqueue = [&](int i) {
    // Timed are 1 to 96: whole rounds.
    const Bytes bytes = kSizes[static_cast<std::size_t>(i) % kSizes.size()];
    std::byte* host = gpu.host->pinned() + at;
    std::byte* device = gpu.at({at});
    at = (at + bytes.value) % room / 512 * 512;
    check(
        cudaMemcpyAsync(to_device ? device : host, to_device ? host : device, static_cast<std::size_t>(bytes.value),
                        to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, static_cast<cudaStream_t>(stream)),
        "cudaMemcpyAsync");
  };
  Timed all = bench.timed_burst(stream, kCalls, enqueue);
  for (double* t : {&all.median, &all.least, &all.most}) *t *= kCalls;
  data.copies.push_back({.to_device = to_device,
                         .pinned = true,
                         .mixed = true,
                         .gpu = static_cast<std::int64_t>(index),
                         .bytes = kMean,
                         .calls = kCalls,
                         .all = all});
}

/// What runs at once: GPUs [first, last), with copies in, out or both ways.
struct Shape {
  std::size_t first = 0;
  std::size_t last = 1;
  bool in = true;
  bool out = true;
  Bytes bytes{0};
};

std::vector<CopyFlow> start_flows(Bench& bench, const Shape& shape) {
  const std::int64_t usual = kFlow.value / shape.bytes.value;
  const auto count =
      std::clamp(static_cast<std::int64_t>(bench.longer() * static_cast<double>(usual)), kLeastCopies, kMostCopies);
  const int step = bench.next_step();
  std::vector<CopyFlow> flows;
  std::vector<int> devices;
  for (std::size_t g = shape.first; g < shape.last; ++g) {
    set_device(bench.gpu(g).device);
    for (const bool to_device : {true, false}) {
      if (!(to_device ? shape.in : shape.out)) continue;
      CopyFlow& flow = flows.emplace_back(bench.gpu(g), to_device, shape.bytes, count);
      devices.push_back(bench.gpu(g).device);
      bench.gate().hold(step, flow.stream());
      flow.begin();
    }
  }
  // In turns, so that no stream runs dry while the host waits for room in another's queue.
  const std::int64_t turn = std::max<std::int64_t>(1, kAhead / 4);
  for (std::int64_t until = turn; until < count + turn; until += until < kAhead / 2 ? turn : 8) {
    if (until >= kAhead / 2) bench.gate().open(step);
    for (std::size_t f = 0; f < flows.size(); ++f) {
      set_device(devices[f]);
      flows[f].enqueue(until);
    }
  }
  bench.gate().open(step);
  for (std::size_t f = 0; f < flows.size(); ++f) {
    set_device(devices[f]);
    synchronize(flows[f].stream());
  }
  return flows;
}

void flows_together(Bench& bench, const Shape& shape, CalibrationData& data) {
  for (std::size_t g = shape.first; g < shape.last; ++g)
    if (4 * shape.bytes.value > std::min(bench.gpu(g).host->pinned_bytes(), bench.gpu(g).block_bytes).value) return;
  const std::vector<CopyFlow> flows = start_flows(bench, shape);
  std::vector<std::vector<double>> marks;
  double from = 0;
  double to = 1e30;
  for (const CopyFlow& flow : flows) {
    marks.push_back(flow.marks());
    from = std::max(from, marks.back().front());
    to = std::min(to, marks.back().back());
  }
  if (to <= from) return;  // one had ended before another began: not together
  const std::size_t each = (shape.in ? 1 : 0) + (shape.out ? 1 : 0);
  for (std::size_t g = shape.first; g < shape.last; ++g) {
    const auto moved = [&](std::size_t f) {
      return moved_by(marks[f], flows[f].step(), to) - moved_by(marks[f], flows[f].step(), from);
    };
    const std::size_t f = (g - shape.first) * each;
    data.flows.push_back({.gpu = static_cast<std::int64_t>(g),
                          .gpus = static_cast<std::int64_t>(shape.last - shape.first),
                          .bytes = shape.bytes,
                          .window = to - from,
                          .h2d = shape.in ? moved(f) : 0,
                          .d2h = shape.out ? moved(f + each - 1) : 0});
  }
}

void pageable(Bench& bench, const BenchGpu& gpu, std::size_t index, CalibrationData& data) {
  const Bytes bytes = 256_MiB;
  void* stream = gpu.in.get();
  for (const bool to_device : {true, false}) {
    std::vector<double> seconds;
    for (int i = 0; i <= bench.repeats(); ++i) {
      std::byte* host = gpu.host->pageable() + i % 4 * bytes.value;
      const auto begin = Clock::now();
      check(cudaMemcpyAsync(
                to_device ? gpu.at({0}) : host, to_device ? host : gpu.at({0}), static_cast<std::size_t>(bytes.value),
                to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, static_cast<cudaStream_t>(stream)),
            "cudaMemcpyAsync");
      synchronize(stream);
      if (i > 0) seconds.push_back(since(begin));
    }
    data.copies.push_back({.to_device = to_device,
                           .pinned = false,
                           .mixed = false,
                           .gpu = static_cast<std::int64_t>(index),
                           .bytes = bytes,
                           .calls = 1,
                           .all = timed(std::move(seconds))});
  }
}

double seconds_to_pin(Bytes bytes, std::int64_t calls) {
  std::vector<Handle<MappedBytesTraits>> kept;
  const auto begin = Clock::now();
  for (std::int64_t i = 0; i < calls; ++i) {
    void* address = nullptr;
    check(cudaHostAlloc(&address, static_cast<std::size_t>(bytes.value), cudaHostAllocDefault), "cudaHostAlloc");
    kept.emplace_back(address);
  }
  return since(begin);
}

double seconds_to_register(Bytes bytes) {
  const auto size = static_cast<std::size_t>(bytes.value);
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(4096, size), &std::free);
  if (memory == nullptr) throw IoError(fmt::format("no {} of host memory to register", format_bytes(bytes)));
  std::fill_n(static_cast<unsigned char*>(memory.get()), size, static_cast<unsigned char>(1));
  const auto begin = Clock::now();
  check(cudaHostRegister(memory.get(), size, cudaHostRegisterDefault), "cudaHostRegister");
  const double seconds = since(begin);
  check(cudaHostUnregister(memory.get()), "cudaHostUnregister");
  return seconds;
}

}  // namespace

void measure_pinning(Bench& bench, CalibrationData& data) {
  bench.say("pinning");
  set_device(bench.gpu(0).device);
  const PreferNode near(bench.gpu(0).node);
  seconds_to_pin(16_MiB, 1);
  struct Shape {
    Bytes bytes;
    std::int64_t calls;
  };
  for (const Shape shape : {Shape{1_MiB, 64}, Shape{16_MiB, 16}, Shape{256_MiB, 2}, Shape{2_GiB, 1}})
    data.pins.push_back({.what = "alloc",
                         .bytes = shape.bytes,
                         .calls = shape.calls,
                         .seconds = seconds_to_pin(shape.bytes, shape.calls)});
  for (const Bytes bytes : {256_MiB, 1_GiB})
    data.pins.push_back({.what = "register", .bytes = bytes, .calls = 1, .seconds = seconds_to_register(bytes)});
}

void measure_copies(Bench& bench, int round, CalibrationData& data) {
  for (std::size_t g = 0; g < bench.gpus(); ++g) {
    const BenchGpu& gpu = bench.gpu(g);
    bench.say(fmt::format("GPU {}: copies alone", gpu.device));
    set_device(gpu.device);
    for (const Bytes bytes : kAlone)
      for (const bool to_device : {true, false}) copies_alone(bench, gpu, g, to_device, bytes, data);
    if (g == 0 && round == 0) {
      for (const bool to_device : {true, false}) mixed_copies(bench, gpu, g, to_device, data);
      pageable(bench, gpu, g, data);
    }
    bench.say(fmt::format("GPU {}: copies both ways", gpu.device));
    for (const Bytes bytes : kTogether)
      for (int repeat = 0; repeat < kFlowRepeats; ++repeat)
        flows_together(bench, {.first = g, .last = g + 1, .in = true, .out = true, .bytes = bytes}, data);
  }
  if (bench.gpus() == 1 || round > 0) return;
  bench.say("copies of all GPUs at once");
  for (const Bytes bytes : kAllGpus) {
    for (const auto& [in, out] : {std::pair(true, false), std::pair(false, true), std::pair(true, true)})
      flows_together(bench, {.first = 0, .last = bench.gpus(), .in = in, .out = out, .bytes = bytes}, data);
  }
}

}  // namespace ebb::replay
