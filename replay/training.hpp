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
// A step whose gradient norm is inf or nan is skipped where the rank has a plan for that (LifePart::skip): no state
// changes, its digest is 0, Adam's own count of steps stays; without one it still updates. Loss scaling (fp16
// parameters): backward multiplies by the scale, norm and clip divide by it again. Megatron's dynamic rule: a skipped
// step halves it (after `hysteresis` of them), `interval` good ones in a row double it.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/adamw.hpp"
#include "models/plan.hpp"

namespace ebb::replay {

/// Source: Megatron-LM core/optimizer/grad_scaler.py, DynamicGradScaler. Powers of two, so that scaling alone changes
/// no finite bit.
struct LossScaling {
  bool on = false;
  float initial = 4294967296.0F;
  float least = 1.0F;
  int interval = 1000;
  int hysteresis = 2;
  bool operator==(const LossScaling&) const = default;
};

/// `value` (inf or nan) in place of one gradient element that `rank` owns, in training step `step` (1, 2, ...).
struct Injection {
  std::int64_t step = 0;
  std::int64_t rank = 0;
  float value = 0;
};

struct TrainingOptions {
  std::uint64_t seed = 1;
  kernels::AdamwOptions adam;
  float max_norm = 1.0F;
  bool digests = true;  // off where only time counts
  LossScaling scaling = {};
  std::vector<Injection> injections = {};
};

/// What a run began with and a resume has to go on with, so that it gives the numbers of a run without one: padding is
/// made from the first seed, and the scale moves by the rule. A checkpoint keeps it.
struct TrainingOrigin {
  std::uint64_t seed = 1;
  LossScaling scaling = {};
  bool operator==(const TrainingOrigin&) const = default;
};
inline TrainingOrigin origin_of(const TrainingOptions& options) { return {options.seed, options.scaling}; }

/// Where a training run stands between steps: what a checkpoint keeps beside tensors. The same on all ranks.
struct TrainingPlace {
  std::int64_t steps = 0;       // taken, skipped ones included
  std::int64_t adam_steps = 0;  // that changed the state: Adam's bias correction goes by them
  std::uint64_t seed = 1;       // of the next step; by rank it differs only in what the digests added
  float loss_scale = 1;
  int good_steps = 0;  // since the scale changed
  int hysteresis = 0;  // skipped steps that the scale still stands
  bool operator==(const TrainingPlace&) const = default;
};

/// The place before the first step.
TrainingPlace first_place(const TrainingOptions& options);

/// The loss scale from step to step; 1 for ever where it is off.
class LossScaler {
 public:
  /// Goes on where `place` stands.
  LossScaler(const LossScaling& rule, const TrainingPlace& place);
  float scale() const { return scale_; }
  void step(bool skipped);
  void write_to(TrainingPlace& place) const;

 private:
  LossScaling rule_;
  float scale_ = 1;
  int good_steps_ = 0;
  int hysteresis_ = 0;
};

/// `place` after a step. `digest`: the sum of all ranks' StepNumbers::digest; 0 where digests are off.
TrainingPlace after_step(const TrainingOptions& options, const TrainingPlace& place, bool skipped,
                         std::uint64_t digest);

/// The value that `rank` injects in training step `step`, if any. It replaces the gradient of padded element
/// PlanShard::at of the rank's first shard that is not empty, after its last backward op.
const Injection* injection_of(const TrainingOptions& options, std::int64_t rank, std::int64_t step);

/// The numbers that two runs must have in common after every step.
struct StepNumbers {
  double loss = 0;           // of this rank
  float sum_of_squares = 0;  // of all ranks' gradients, before clipping
  std::uint64_t digest = 0;  // of the state that Adam left; 0 without digests
  bool skipped = false;
  float loss_scale = 1;
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
