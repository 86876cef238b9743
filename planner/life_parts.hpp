// What of the optimizer's state exists when a part of a job's life begins, and which part may follow which.
//
//   init -> load | load_params | first step        masters come in init, unless the optimizer makes them itself, in its
//   load_params -> first step                      first step; moments come in the first step or with a load
//   first step or load -> step | save | reload     everything is there from then on
// A skipped first step leaves what was there before it.
#pragma once

#include <span>

#include "models/plan.hpp"

namespace ebb {

constexpr bool is_first_step(LifePart part) { return part == LifePart::first_step || part == LifePart::first_skip; }
constexpr bool is_skip(LifePart part) { return part == LifePart::skip || part == LifePart::first_skip; }
constexpr bool is_load(LifePart part) {
  return part == LifePart::load || part == LifePart::load_params || part == LifePart::reload;
}
/// It has forward and backward.
constexpr bool is_training(LifePart part) {
  return part == LifePart::step || part == LifePart::skip || is_first_step(part);
}

/// Moments exist before the part begins, and so do the fp32 copies of a step's gradients.
constexpr bool moments_exist(LifePart part) {
  return part == LifePart::step || part == LifePart::skip || part == LifePart::save || part == LifePart::reload;
}
/// Masters exist before the part begins.
inline bool masters_exist(LifePart part, const Precision& precision) {
  if (precision.master_bytes() == 0 || part == LifePart::init) return false;
  return moments_exist(part) || !precision.optimizer_holds_masters();
}

/// What may come after `part` in a life.
std::span<const LifePart> followers(LifePart part);

}  // namespace ebb
