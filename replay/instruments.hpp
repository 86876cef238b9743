// Instruments: device memory that replay itself needs and no training job would have: partial sums of norm and loss,
// the numbers of a step, GEMM operands, values of quantised parameters that a stand-in works on, and what the host
// reads of them. Reported apart from the plan's buffers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "replay/cuda.hpp"
#include "replay/ready.hpp"
#include "replay/training.hpp"

namespace ebb::replay {

/// Sizes of what a program's actions need of them.
struct InstrumentNeeds {
  Bytes workspace{0};
  Bytes values{0};           // of quantised parameters, as fp32
  std::size_t forwards = 0;  // losses of a step: without fillers
  std::int64_t gemm = 0;     // operands of products of this size; 0: none
};
InstrumentNeeds instrument_needs(const Program& program, std::span<const Ready> actions, std::int64_t gemm);
/// Enough for either.
InstrumentNeeds largest(const InstrumentNeeds& a, const InstrumentNeeds& b);
/// Device memory that they take.
Bytes device_bytes(const InstrumentNeeds& needs);

/// How many values of quantised parameters a stand-in works on at once; a multiple of kernels::kSumTile.
inline constexpr Numel kValuesAtOnce{std::int64_t{1} << 24};

class Instruments {
 public:
  /// On the current device.
  explicit Instruments(const InstrumentNeeds& needs);

  Bytes bytes() const { return device_bytes(needs_); }
  void* workspace() const { return workspace_.get(); }                  // for one stream at a time: the compute stream
  float* values() const { return static_cast<float*>(values_.get()); }  // likewise
  void* operand(int which) const;                                       // 0, 1: factors, 2: product

  std::uint64_t* digest() const;
  float* sum_of_squares() const;
  /// Of the n-th forward op of a step that has one.
  double* loss(std::size_t forward) const;

  /// Enqueues zeros for the step's numbers.
  void begin_step(void* stream);
  /// What `word` (device memory, 32 bits) holds now: on a stream of its own, whatever others are doing. Waits for it.
  std::uint32_t look_at(const void* word);
  /// Enqueues the copy to the host; fetched() once the stream has been waited for.
  void fetch(void* stream);
  /// The loss is added up in the order of the forward ops.
  StepNumbers fetched() const;

 private:
  InstrumentNeeds needs_;
  DeviceBytes workspace_;
  DeviceBytes values_;
  DeviceBytes operands_;
  DeviceBytes numbers_;
  PinnedBytes read_;
  Stream look_;
  PinnedBytes seen_;
};

}  // namespace ebb::replay
