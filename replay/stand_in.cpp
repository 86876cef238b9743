#include "replay/stand_in.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "kernels/elementwise.hpp"
#include "kernels/gemm.hpp"
#include "kernels/objective.hpp"
#include "replay/cuda.hpp"
#include "replay/instruments.hpp"

namespace ebb::replay {

namespace {

Ticks ticks_of_ms(double ms) { return to_ticks({ms * 1e-3}); }

/// Runs and times on one stream, waiting for the end.
class Bench {
 public:
  explicit Bench(void* stream) : stream_(stream), begin_(make_event(true)), end_(make_event(true)) {}

  /// Milliseconds that one of `repeats` calls takes.
  template <class Enqueue>
  double ms(int repeats, Enqueue&& enqueue) {
    record(begin_);
    for (int i = 0; i < repeats; ++i) enqueue();
    record(end_);
    check(cudaEventSynchronize(static_cast<cudaEvent_t>(end_.get())), "cudaEventSynchronize");
    return static_cast<double>(elapsed_ms(begin_, end_)) / repeats;
  }
  /// As long as `at_least_ms` together, after one untimed call.
  template <class Enqueue>
  double steady_ms(double at_least_ms, Enqueue&& enqueue) {
    constexpr double kMost = 10'000;
    ms(1, enqueue);
    const double once = std::max(ms(3, enqueue), 1e-3);
    return ms(static_cast<int>(std::clamp(at_least_ms / once, 3.0, kMost)), enqueue);
  }

 private:
  void record(const Event& event) {
    check(cudaEventRecord(static_cast<cudaEvent_t>(event.get()), static_cast<cudaStream_t>(stream_)),
          "cudaEventRecord");
  }
  void* stream_;
  Event begin_;
  Event end_;
};

std::vector<GemmTime> gemm_times(Bench& bench, const Instruments& instruments, void* stream) {
  constexpr double kSteadyMs = 100;  // long enough for clocks to settle under the load
  constexpr double kShortMs = 5;
  std::vector<GemmTime> times;
  for (const std::int64_t size : {std::int64_t{4096}, std::int64_t{2048}, std::int64_t{1024}, std::int64_t{512}}) {
    const kernels::Gemm gemm{instruments.operand(0), instruments.operand(1), instruments.operand(2), size};
    const auto launch = [&] { check(kernels::launch_gemm(gemm, stream), "launch_gemm"); };
    if (times.empty()) bench.steady_ms(kSteadyMs, launch);
    const Ticks time = ticks_of_ms(bench.steady_ms(times.empty() ? kSteadyMs : kShortMs, launch));
    if (times.empty() || time < times.back().time) times.push_back({size, time});
  }
  return times;
}

/// What a stand-in takes without products.
class Others {
 public:
  Others(const Program& program, const StandInSpace& space, const Instruments& instruments, void* stream)
      : program_(program), space_(space), instruments_(instruments), stream_(stream), bench_(stream) {
    if (!program_.quantized) zero_params();
    const std::size_t bytes = static_cast<std::size_t>(grads_bytes().value);
    if (bytes == 0) return;
    void* const grads = space_.grads;
    fill_ms_per_byte_ = bench_.steady_ms(2, [&] {
      check(cudaMemsetAsync(grads, 0, bytes, static_cast<cudaStream_t>(stream_)), "cudaMemsetAsync");
    }) / static_cast<double>(bytes);
  }

  Bench& bench() { return bench_; }

  double ms(const Stand& stand) {
    if (stand.fills()) return stand.backward ? 0 : fill_ms(stand);
    if (program_.quantized) return 0;
    const auto key = std::tuple(stand.backward, stand.range.begin, stand.range.end);
    const auto known = measured_.find(key);
    const double kernel = known != measured_.end() ? known->second : measured_[key] = kernel_ms(stand);
    return kernel + (stand.backward ? 0 : fill_ms(stand));
  }

 private:
  Bytes grads_bytes() const {
    return program_.grads.valid() ? program_.plan->buffers[program_.grads.index].bytes : Bytes{0};
  }
  /// What the loss reads should be something.
  void zero_params() const {
    if (!program_.params.valid()) return;
    const std::int64_t bytes = program_.padded.value * size_of(program_.plan->precision.params);
    check(cudaMemsetAsync(space_.params, 0, static_cast<std::size_t>(bytes), static_cast<cudaStream_t>(stream_)),
          "cudaMemsetAsync");
  }
  double fill_ms(const Stand& stand) const {
    if (!stand.activations.valid()) return 0;
    const Bytes whole = program_.plan->buffers[stand.activations.index].bytes;
    return fill_ms_per_byte_ * static_cast<double>(overwritten(stand, whole, program_.padded).bytes.value);
  }
  double kernel_ms(const Stand& stand) {
    const Precision& precision = program_.plan->precision;
    const auto at = [&](void* base, Dtype type) {
      return static_cast<char*>(base) + stand.range.begin * size_of(type);
    };
    const kernels::ObjectiveParams params{at(space_.params, precision.params), kernel_type(precision.params),
                                          stand.range.begin, stand.range.numel().value};
    return bench_.steady_ms(1, [&] {
      if (stand.backward) {
        const kernels::ObjectiveGrads grads{at(space_.grads, precision.grads), kernel_type(precision.grads), 1, true};
        check(kernels::launch_objective_gradient(params, {}, grads, stream_), "launch_objective_gradient");
      } else {
        check(kernels::launch_objective_loss(params, {}, instruments_.workspace(), instruments_.loss(0), stream_),
              "launch_objective_loss");
      }
    });
  }

  const Program& program_;
  const StandInSpace& space_;
  const Instruments& instruments_;
  void* stream_;
  Bench bench_;
  double fill_ms_per_byte_ = 0;
  std::map<std::tuple<bool, std::int64_t, std::int64_t>, double> measured_;
};

}  // namespace

StandIns::StandIns(const Program& program, std::span<const Ready> actions, const StandInSpace& space,
                   const Instruments& instruments, void* stream) {
  products_.resize(actions.size());
  Others others(program, space, instruments, stream);
  times_ = gemm_times(others.bench(), instruments, stream);
  std::size_t too_long = 0;
  double worst = 0;
  for (std::size_t op = 0; op < actions.size(); ++op) {
    const Stand* stand = std::get_if<Stand>(&actions[op]);
    if (stand == nullptr) continue;
    const double planned = to_seconds(stand->duration).value * 1e3;
    const double ms = others.ms(*stand);
    const Ticks left = stand->duration - ticks_of_ms(ms);
    products_[op] = fill_time(left, times_);
    if (left.value > 0) filled_.push_back({static_cast<std::uint32_t>(op), stand->duration, ticks_of_ms(ms), left});
    if (ms <= planned * 1.01) continue;
    ++too_long;
    worst = std::max(worst, ms - planned);
  }
  if (too_long > 0) {
    remark_ = fmt::format(
        "{} forward and backward ops take up to {:.3f} ms longer than planned: their loss, gradients and activations "
        "alone take that long",
        too_long, worst);
  }
}

void StandIns::learn(const Timeline& measured) {
  for (Filled& filled : filled_) {
    filled.left =
        corrected(filled.left, filled.planned, measured.end[filled.op] - measured.start[filled.op], filled.others);
    products_[filled.op] = fill_time(filled.left, times_);
  }
}

std::span<const GemmCount> StandIns::products(std::uint32_t op) const {
  if (op >= products_.size()) return {};
  return products_[op];
}

std::int64_t StandIns::launches(std::uint32_t op) const {
  std::int64_t sum = 0;
  for (const GemmCount& gemm : products(op)) sum += gemm.count;
  return sum;
}

}  // namespace ebb::replay
