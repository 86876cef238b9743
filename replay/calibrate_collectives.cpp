// Collectives of all GPUs: over sizes alone, and beside copies both ways on every GPU. One thread a GPU, as replay runs
// them.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "models/quantity_text.hpp"
#include "replay/barrier.hpp"
#include "replay/calibrate_bench.hpp"
#include "replay/calibrate_fit.hpp"
#include "replay/execute.hpp"
#include "replay/nccl.hpp"

namespace ebb::replay {
namespace {

constexpr std::array kWorks = {Work::all_gather, Work::reduce_scatter, Work::all_reduce};
constexpr std::array kSizes = {1_KiB, 64_KiB, 1_MiB, 4_MiB, 16_MiB, 64_MiB, 256_MiB, 1_GiB};
constexpr std::array kBeside = {64_MiB, 256_MiB};
constexpr Bytes kCopy = 64_MiB;

using Clock = std::chrono::steady_clock;

/// What ranks tell each other about the measurement that runs.
struct Shared {
  explicit Shared(std::size_t ranks) : barrier(static_cast<int>(ranks)), seconds(ranks), link_use(ranks) {}

  Barrier barrier;
  int step = 0;
  std::vector<double> seconds;
  std::vector<double> link_use;
  NcclId id;
};

class Rank {
 public:
  Rank(Bench& bench, Shared& shared, std::size_t index, double alone_rate)
      : bench_(bench),
        shared_(shared),
        gpu_(bench.gpu(index)),
        index_(index),
        alone_rate_(alone_rate),
        comm_(shared.id, static_cast<int>(index), static_cast<int>(bench.gpus())) {}

  void run(CalibrationData& data);

 private:
  void* stream() const { return gpu_.compute.get(); }
  void enqueue(Work work, Bytes bytes);
  void together(Work work, Bytes bytes, bool beside, CalibrationData& data);
  double once(Work work, Bytes bytes, int calls, bool beside);
  double used(const CopyFlow& flow, const Event& begin, const Event& end) const;
  void issue_cost(CalibrationData& data);

  Bench& bench_;
  Shared& shared_;
  const BenchGpu& gpu_;
  std::size_t index_;
  double alone_rate_;
  NcclComm comm_;
};

void Rank::enqueue(Work work, Bytes bytes) {
  void* at = gpu_.block.get();
  const Numel all{bytes.value / 4};
  const Numel part{all.value / static_cast<std::int64_t>(bench_.gpus())};
  if (work == Work::all_gather) return comm_.all_gather(at, part, Dtype::fp32, stream());
  if (work == Work::reduce_scatter) return comm_.reduce_scatter(at, part, Dtype::fp32, stream());
  comm_.all_reduce(at, all, Dtype::fp32, stream());
}

/// Part of the link's rate alone that the flow had between two events.
double Rank::used(const CopyFlow& flow, const Event& begin, const Event& end) const {
  const std::vector<double> marks = flow.marks();
  const double from = std::max(marks.front(), flow.since_begin(begin));
  const double to = std::min(marks.back(), flow.since_begin(end));
  if (to <= from) return 0;
  return (moved_by(marks, flow.step(), to) - moved_by(marks, flow.step(), from)) / (to - from) / alone_rate_;
}

/// Seconds of one call in `calls` back to back; all ranks at once.
double Rank::once(Work work, Bytes bytes, int calls, bool beside) {
  shared_.barrier.meet([&] { shared_.step = bench_.next_step(); });
  const Event begin = make_event(true);
  const Event end = make_event(true);
  std::vector<CopyFlow> flows;
  if (beside) {
    // Long enough for the collectives several times over: 64 MiB take 1.2 ms or more, 256 MiB of collective about 1.
    for (const bool to_device : {true, false}) {
      CopyFlow& flow = flows.emplace_back(gpu_, to_device, kCopy, 3 * calls);
      bench_.gate().hold(shared_.step, flow.stream());
      flow.begin();
      flow.enqueue(flow.count());
    }
  }
  bench_.gate().hold(shared_.step, stream());
  enqueue(work, bytes);
  record(begin, stream());
  for (int i = 0; i < calls; ++i) enqueue(work, bytes);
  record(end, stream());
  shared_.barrier.meet([&] { bench_.gate().open(shared_.step); });
  synchronize(stream());
  for (const CopyFlow& flow : flows) synchronize(flow.stream());
  comm_.check();
  if (bench_.gate().timed_out()) throw CudaError("the gate before a collective opened by itself");
  shared_.seconds[index_] = static_cast<double>(elapsed_ms(begin, end)) / 1e3 / calls;
  shared_.link_use[index_] = 0;
  for (const CopyFlow& flow : flows)
    shared_.link_use[index_] = std::max(shared_.link_use[index_], used(flow, begin, end));
  double slowest = 0;
  shared_.barrier.meet();
  for (const double seconds : shared_.seconds) slowest = std::max(slowest, seconds);
  return slowest;
}

void Rank::together(Work work, Bytes bytes, bool beside, CalibrationData& data) {
  const auto calls = static_cast<int>(std::clamp<std::int64_t>((4_GiB).value / bytes.value, 4, 20));
  std::vector<double> seconds;
  double use = 0;
  // Once without a gate: NCCL may connect peers, and CUDA load a kernel, for the first of a kind and size.
  enqueue(work, bytes);
  synchronize(stream());
  for (int repeat = 0; repeat <= bench_.repeats(); ++repeat) {
    const double each = once(work, bytes, calls, beside);
    if (repeat > 0) seconds.push_back(each);
    use = *std::max_element(shared_.link_use.begin(), shared_.link_use.end());
  }
  if (index_ != 0) return;
  data.collectives.push_back({.work = work,
                              .members = static_cast<std::int64_t>(bench_.gpus()),
                              .bytes = bytes,
                              .link_use = use,
                              .each = timed(std::move(seconds))});
}

/// Host time of enqueuing, while the other ranks do the same.
void Rank::issue_cost(CalibrationData& data) {
  constexpr int kCalls = 32;
  std::vector<double> each;
  for (int repeat = 0; repeat <= bench_.repeats(); ++repeat) {
    shared_.barrier.meet();
    const auto begin = Clock::now();
    for (int i = 0; i < kCalls; ++i) enqueue(Work::all_reduce, 64_KiB);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    synchronize(stream());
    if (repeat > 0) each.push_back(seconds / kCalls);
  }
  if (index_ == 0) data.calls.push_back({"collective", timed(std::move(each))});
}

void Rank::run(CalibrationData& data) {
  set_device(gpu_.device);
  for (const Work work : kWorks) enqueue(work, 1_MiB);  // NCCL connects peers and allocates at the first use
  synchronize(stream());
  issue_cost(data);
  for (const Bytes bytes : kSizes)
    for (const Work work : kWorks) together(work, bytes, false, data);
  for (const Bytes bytes : kBeside)
    for (const Work work : {Work::all_gather, Work::reduce_scatter}) together(work, bytes, true, data);
}

/// The faster way of one link alone, for the use of links; from what was measured before.
double link_rate(const CalibrationData& data) {
  double rate = 0;
  for (const CopyTime& copy : data.copies)
    if (copy.pinned) rate = std::max(rate, static_cast<double>(copy.bytes.value * copy.calls) / copy.all.median);
  return rate;
}

}  // namespace

void measure_collectives(Bench& bench, CalibrationData& data) {
  const std::size_t gpus = bench.gpus();
  if (gpus == 1) return;
  bench.say("collectives");
  load_nccl();
  data.setting.nccl = nccl_version();
  Shared shared(gpus);
  shared.id = new_nccl_id();
  const double rate = link_rate(data);
  std::vector<Bytes> before;
  for (std::size_t g = 0; g < gpus; ++g) {
    set_device(bench.gpu(g).device);
    before.push_back(device_room().free);
  }
  std::vector<Bytes> after(gpus);
  {
    std::vector<std::jthread> ranks;
    for (std::size_t g = 0; g < gpus; ++g)
      ranks.emplace_back([&, g] {
        try {
          set_device(bench.gpu(g).device);
          Rank rank(bench, shared, g, rate);
          rank.run(data);  // rank 0 writes
          after[g] = device_room().free;
          shared.barrier.meet();    // nobody leaves while another still counts
        } catch (const Stopped&) {  // the error is another's
        } catch (...) {
          shared.barrier.break_with(std::current_exception());
        }
      });
  }
  shared.barrier.rethrow();
  Bytes grown{0};
  for (std::size_t g = 0; g < gpus; ++g) grown = std::max(grown, before[g] - after[g]);
  data.setting.context += grown;
}

}  // namespace ebb::replay
