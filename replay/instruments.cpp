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
    return stand != nullptr && !stand->backward;
  }));
}

Bytes numbers_bytes(std::size_t forwards) { return {kLossesAt + 8 * static_cast<std::int64_t>(forwards)}; }

Bytes workspace_bytes(std::span<const Ready> actions) {
  std::int64_t bytes = 8;
  for (const Ready& action : actions) {
    if (const auto* stand = std::get_if<Stand>(&action)) {
      bytes = std::max(bytes, kernels::objective_workspace(stand->range.begin, stand->range.numel().value));
    } else if (const auto* norm = std::get_if<ReadyNorm>(&action)) {
      bytes = std::max(bytes, kernels::sum_of_squares_workspace(norm->runs));
    }
  }
  return {bytes};
}

char* plus(const DeviceBytes& memory, std::int64_t at) { return static_cast<char*>(memory.get()) + at; }

}  // namespace

Bytes Instruments::bytes_needed(const Program&, std::span<const Ready> actions, std::int64_t gemm) {
  return workspace_bytes(actions) + numbers_bytes(forwards_of(actions)) + Bytes{kernels::gemm_bytes(gemm)};
}

Instruments::Instruments(const Program& program, std::span<const Ready> actions, std::int64_t gemm)
    : forwards_(forwards_of(actions)),
      gemm_(gemm),
      bytes_(bytes_needed(program, actions, gemm)),
      workspace_(make_device_bytes(workspace_bytes(actions))),
      numbers_(make_device_bytes(numbers_bytes(forwards_))),
      read_(numbers_bytes(forwards_)) {
  if (gemm_ == 0) return;
  operands_ = make_device_bytes({kernels::gemm_bytes(gemm_)});
  // Not zeros: tensor cores draw less power on them and run faster than in training.
  const kernels::Run all{0, 0, 2 * gemm_ * gemm_};
  check(kernels::launch_fill_random(kernels::Type::bf16, operands_.get(), {&all, 1}, 1, 1.0F, nullptr),
        "launch_fill_random");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

void* Instruments::operand(int which) const { return plus(operands_, which * 2 * gemm_ * gemm_); }
std::uint64_t* Instruments::digest() const { return reinterpret_cast<std::uint64_t*>(plus(numbers_, kDigestAt)); }
float* Instruments::sum_of_squares() const { return reinterpret_cast<float*>(plus(numbers_, kSumAt)); }
double* Instruments::loss(std::size_t forward) const {
  EBB_ASSERT(forward < forwards_);
  return reinterpret_cast<double*>(plus(numbers_, kLossesAt)) + forward;
}

void Instruments::begin_step(void* stream) {
  check(cudaMemsetAsync(numbers_.get(), 0, static_cast<std::size_t>(numbers_bytes(forwards_).value),
                        static_cast<cudaStream_t>(stream)),
        "cudaMemsetAsync");
}

void Instruments::fetch(void* stream) {
  check(cudaMemcpyAsync(read_.host(), numbers_.get(), static_cast<std::size_t>(numbers_bytes(forwards_).value),
                        cudaMemcpyDeviceToHost, static_cast<cudaStream_t>(stream)),
        "cudaMemcpyAsync");
}

StepNumbers Instruments::fetched() const {
  const char* at = static_cast<const char*>(read_.host());
  StepNumbers numbers;
  numbers.digest = *reinterpret_cast<const std::uint64_t*>(at + kDigestAt);
  numbers.sum_of_squares = *reinterpret_cast<const float*>(at + kSumAt);
  const auto* losses = reinterpret_cast<const double*>(at + kLossesAt);
  for (std::size_t i = 0; i < forwards_; ++i) numbers.loss += losses[i];
  return numbers;
}

}  // namespace ebb::replay
