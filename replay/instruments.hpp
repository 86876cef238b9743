// Instruments: device memory that replay itself needs and no training job would have: partial sums of norm and loss,
// the numbers of a step, GEMM operands, and what the host reads of them. Reported apart from the plan's buffers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "replay/cuda.hpp"
#include "replay/ready.hpp"
#include "replay/training.hpp"

namespace ebb::replay {

class Instruments {
 public:
  /// Sized for these actions, on the current device. `gemm`: operands of products of this size, 0: none.
  Instruments(const Program& program, std::span<const Ready> actions, std::int64_t gemm);
  /// What the constructor will allocate there.
  static Bytes bytes_needed(const Program& program, std::span<const Ready> actions, std::int64_t gemm);

  Bytes bytes() const { return bytes_; }
  void* workspace() const { return workspace_.get(); }  // for one stream at a time: the compute stream
  void* operand(int which) const;                       // 0, 1: factors, 2: product

  std::uint64_t* digest() const;
  float* sum_of_squares() const;
  /// Of the n-th forward op of a step.
  double* loss(std::size_t forward) const;

  /// Enqueues zeros for the step's numbers.
  void begin_step(void* stream);
  /// Enqueues the copy to the host; fetched() once the stream has been waited for.
  void fetch(void* stream);
  /// The loss is added up in the order of the forward ops.
  StepNumbers fetched() const;

 private:
  std::size_t forwards_ = 0;
  std::int64_t gemm_ = 0;
  Bytes bytes_{0};
  DeviceBytes workspace_;
  DeviceBytes operands_;
  DeviceBytes numbers_;
  PinnedBytes read_;
};

}  // namespace ebb::replay
