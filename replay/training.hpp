// The training loop with consequences that every executor runs: gradients depend on the parameters of this moment, so
// that a wrong bit shows up in loss and gradient norm.
//
// Step t = 1, 2, ... of a rank. Element e of its padded parameter buffer has the value p; kernels/objective.hpp gives
// loss and gradient for (seed_t, t, micro, rank, e, p). The loss of a rank is the sum over its forward ops, in program
// order, of a fixed-order double sum over their elements; every backward op adds its gradients / data-parallel size.
// Reduce-scatter sums, norm and clip follow (clip to max_norm), then AdamW (kernels/adamw.hpp) and the cast.
//   seed_1 = seed;  seed_{t+1} = mix(seed_t, digest_t), where digest_t covers every bit of state that Adam left in step
//   t (when digests are on): one wrong bit anywhere in the state changes all numbers of the next step, and a bit lost
//   on the way to the host or back does so one step later.
// In the beginning masters are uniform in [-1, 1) by element and seed, parameters their rounding, moments 0.
// A step whose gradient norm is inf or nan still updates here (skipping steps is not part of a plan yet).
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/adamw.hpp"
#include "models/plan.hpp"

namespace ebb::replay {

struct TrainingOptions {
  std::uint64_t seed = 1;
  kernels::AdamwOptions adam;
  float max_norm = 1.0F;
  bool digests = true;  // off where only time counts
};

/// The numbers that two runs must have in common after every step.
struct StepNumbers {
  double loss = 0;                                      // of this rank
  float sum_of_squares = 0;                             // of all ranks' gradients, before clipping
  std::uint64_t digest = 0;                             // of the state that Adam left; 0 without digests
  bool operator==(const StepNumbers&) const = default;  // loss is never NaN in a run that counts
};

/// Layout of the buffer with role norm.
struct NormWords {
  static constexpr std::int64_t kSumOfSquares = 0;  // fp32
  static constexpr std::int64_t kCoefficient = 4;   // fp32
  static constexpr std::int64_t kNonFinite = 8;     // uint32
};

/// Digests (kernels/digest.hpp). StepNumbers::digest sums, over the ops of Adam, exp_avg, exp_avg_sq and masters as the
/// op left them; the index of an element is its owned index. The final state is the same over Program::after, plus all
/// padded parameters by padded index.
constexpr std::uint64_t digest_tag(StateBits state) { return 0x656262U + static_cast<std::uint64_t>(state) * 0x10001U; }
std::uint64_t next_seed(std::uint64_t seed, std::uint64_t digest);

}  // namespace ebb::replay
