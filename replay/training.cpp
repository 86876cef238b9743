#include "replay/training.hpp"

#include <algorithm>

#include "kernels/digest.hpp"

namespace ebb::replay {

std::uint64_t next_seed(std::uint64_t seed, std::uint64_t digest) {
  return kernels::mix64(seed * kernels::kDigestStride ^ digest);
}

TrainingPlace first_place(const TrainingOptions& options) {
  TrainingPlace place{.seed = options.seed};
  if (options.scaling.on) place.loss_scale = options.scaling.initial;
  place.hysteresis = options.scaling.hysteresis;
  return place;
}

LossScaler::LossScaler(const LossScaling& rule, const TrainingPlace& place)
    : rule_(rule), scale_(place.loss_scale), good_steps_(place.good_steps), hysteresis_(place.hysteresis) {}

void LossScaler::step(bool skipped) {
  if (!rule_.on) return;
  if (skipped) {
    good_steps_ = 0;
    if (--hysteresis_ <= 0) scale_ = std::max(scale_ * 0.5F, rule_.least);
    return;
  }
  if (++good_steps_ < rule_.interval) return;
  good_steps_ = 0;
  hysteresis_ = rule_.hysteresis;
  scale_ *= 2.0F;
}

void LossScaler::write_to(TrainingPlace& place) const {
  place.loss_scale = scale_;
  place.good_steps = good_steps_;
  place.hysteresis = hysteresis_;
}

TrainingPlace after_step(const TrainingOptions& options, const TrainingPlace& place, bool skipped,
                         std::uint64_t digest) {
  TrainingPlace next = place;
  ++next.steps;
  if (!skipped) ++next.adam_steps;
  if (options.digests) next.seed = next_seed(place.seed, digest);
  LossScaler scaler(options.scaling, place);
  scaler.step(skipped);
  scaler.write_to(next);
  return next;
}

const Injection* injection_of(const TrainingOptions& options, std::int64_t rank, std::int64_t step) {
  for (const Injection& injection : options.injections)
    if (injection.rank == rank && injection.step == step) return &injection;
  return nullptr;
}

}  // namespace ebb::replay
