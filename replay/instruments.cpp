#include "replay/instruments.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <variant>

#include "kernels/elementwise.hpp"
#include "kernels/gemm.hpp"
#include "kernels/norm.hpp"
#include "kernels/objective.hpp"
#include "models/errors.hpp"

namespace ebb::replay {

namespace {

// A step's numbers: the digest, the sum of squares, then the losses.
constexpr std::int64_t kDigestAt = 0;
constexpr std::int64_t kSumAt = 8;
constexpr std::int64_t kLossesAt = 16;

std::size_t forwards_of(std::span<const Ready> actions) {
  return static_cast<std::size_t>(std::count_if(actions.begin(), actions.end(), [](const Ready& action) {
    const Stand* stand = std::get_if<Stand>(&action);
    return stand != nullptr && !stand->backward && !stand->fills();
  }));
}

Bytes numbers_bytes(std::size_t forwards) { return {kLossesAt + 8 * static_cast<std::int64_t>(forwards)}; }

char* plus(const DeviceBytes& memory, std::int64_t at) { return static_cast<char*>(memory.get()) + at; }

}  // namespace

InstrumentNeeds instrument_needs(const Program& program, std::span<const Ready> actions, std::int64_t gemm) {
  InstrumentNeeds needs{.workspace = {8}, .values = {0}, .forwards = forwards_of(actions), .gemm = gemm};
  for (const Ready& action : actions) {
    if (const auto* stand = std::get_if<Stand>(&action)) {
      if (stand->fills()) continue;
      const Numel numel = stand->range.numel();
      needs.workspace = std::max(needs.workspace, {kernels::objective_workspace(stand->range.begin, numel.value)});
      if (program.quantized) needs.values = std::max(needs.values, bytes_of(std::min(numel, kValuesAtOnce), 4));
    } else if (const auto* norm = std::get_if<ReadyNorm>(&action)) {
      needs.workspace = std::max(needs.workspace, {kernels::sum_of_squares_workspace(norm->runs)});
    }
  }
  return needs;
}

InstrumentNeeds largest(const InstrumentNeeds& a, const InstrumentNeeds& b) {
  return {.workspace = std::max(a.workspace, b.workspace),
          .values = std::max(a.values, b.values),
          .forwards = std::max(a.forwards, b.forwards),
          .gemm = std::max(a.gemm, b.gemm)};
}

Bytes device_bytes(const InstrumentNeeds& needs) {
  return needs.workspace + needs.values + numbers_bytes(needs.forwards) + Bytes{kernels::gemm_bytes(needs.gemm)};
}

Instruments::Instruments(const InstrumentNeeds& needs)
    : needs_(needs),
      workspace_(make_device_bytes(needs.workspace)),
      numbers_(make_device_bytes(numbers_bytes(needs.forwards))),
      read_(numbers_bytes(needs.forwards)),
      look_(make_stream()),
      seen_({4}) {
  if (needs.values.value > 0) values_ = make_device_bytes(needs.values);
  if (needs.gemm == 0) return;
  operands_ = make_device_bytes({kernels::gemm_bytes(needs.gemm)});
  // Not zeros: tensor cores draw less power on them and run faster than in training.
  const kernels::Run all{0, 0, 2 * needs_.gemm * needs_.gemm};
  check(kernels::launch_fill_random(kernels::Type::bf16, operands_.get(), {&all, 1}, 1, 1.0F, nullptr),
        "launch_fill_random");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

void* Instruments::operand(int which) const { return plus(operands_, which * 2 * needs_.gemm * needs_.gemm); }
std::uint64_t* Instruments::digest() const { return reinterpret_cast<std::uint64_t*>(plus(numbers_, kDigestAt)); }
float* Instruments::sum_of_squares() const { return reinterpret_cast<float*>(plus(numbers_, kSumAt)); }
double* Instruments::loss(std::size_t forward) const {
  EBB_ASSERT(forward < needs_.forwards);
  return reinterpret_cast<double*>(plus(numbers_, kLossesAt)) + forward;
}

void Instruments::begin_step(void* stream) {
  check(cudaMemsetAsync(numbers_.get(), 0, static_cast<std::size_t>(numbers_bytes(needs_.forwards).value),
                        static_cast<cudaStream_t>(stream)),
        "cudaMemsetAsync");
}

std::uint32_t Instruments::look_at(const void* word) {
  const auto stream = static_cast<cudaStream_t>(look_.get());
  check(cudaMemcpyAsync(seen_.host(), word, sizeof(std::uint32_t), cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return *static_cast<const std::uint32_t*>(seen_.host());
}

void Instruments::fetch(void* stream) {
  check(cudaMemcpyAsync(read_.host(), numbers_.get(), static_cast<std::size_t>(numbers_bytes(needs_.forwards).value),
                        cudaMemcpyDeviceToHost, static_cast<cudaStream_t>(stream)),
        "cudaMemcpyAsync");
}

StepNumbers Instruments::fetched() const {
  const char* at = static_cast<const char*>(read_.host());
  StepNumbers numbers;
  numbers.digest = *reinterpret_cast<const std::uint64_t*>(at + kDigestAt);
  numbers.sum_of_squares = *reinterpret_cast<const float*>(at + kSumAt);
  const auto* losses = reinterpret_cast<const double*>(at + kLossesAt);
  for (std::size_t i = 0; i < needs_.forwards; ++i) numbers.loss += losses[i];
  return numbers;
}

}  // namespace ebb::replay
