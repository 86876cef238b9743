// From stretches (activation_stretches.hpp) to levels.
//
// 1. The envelope: before the peak the most so far, after it the most still to come. That is what a stack needs which
//    first grows and then shrinks; what is alive never exceeds it.
//
// 2. Levels: one lies between two neighbouring heights at which the envelope steps, on either side. It rises with the
//    first step of the rising side that is above it, and falls with the last of the falling side. Example: stretches as
//    high as 3, 1, 5, 4, 2, of one unit of time each. Up: 3 at 0, 5 at 2. Down: from 5 at 3, from 4 at 4, from 2 at 5.
//    So 2 on [0, 5), 1 on [0, 4), 1 on [2, 4), 1 on [2, 3).
//
// 3. More levels than wanted: the two neighbours are joined, again and again, whose union adds the least bytes x time.
//    It is alive as long as the lower one, so the stack still holds what the tensors do.
//
// The sum is the footprint's. What it has on top of the walk (measured.peak_remainder) is below all levels; what it
// counts among what is always there (hidden states between pipeline stages) is taken off the lowest.
#include "planner/activation_levels.hpp"

#include <algorithm>
#include <cmath>

#include "models/errors.hpp"

namespace ebb {

namespace {

/// One side of the envelope: it is as high as `height` from (rising) or until (falling) `seconds`, counted from the
/// near end of the step.
struct Step {
  Bytes height{0};
  double seconds = 0;
};

/// Ascending. `first` to `last` are stretches from one end of the step.
template <class Iterator>
std::vector<Step> side(Iterator first, Iterator last) {
  std::vector<Step> steps;
  Bytes highest{0};
  double seconds = 0;
  for (; first != last; ++first) {
    if (first->highest > highest) steps.push_back({highest = first->highest, seconds});
    seconds += first->length.value;
  }
  return steps;
}

/// Whole ticks that have certainly passed.
Ticks ticks_before(double seconds, Ticks total) {
  const auto whole = static_cast<std::int64_t>(std::floor(seconds * static_cast<double>(kTicksPerSecond)));
  return std::clamp(Ticks{whole}, Ticks{0}, total);
}

/// All levels, bottom first.
std::vector<ActivationLevel> all_levels(const std::vector<ActivationStretch>& stretches, Ticks total) {
  const std::vector<Step> up = side(stretches.begin(), stretches.end());
  const std::vector<Step> down = side(stretches.rbegin(), stretches.rend());
  std::vector<ActivationLevel> levels;
  Bytes below{0};
  for (std::size_t u = 0, d = 0; u < up.size() && d < down.size();) {
    const Bytes height = std::min(up[u].height, down[d].height);
    const Ticks rises = ticks_before(up[u].seconds, total);
    levels.push_back({height - below, rises, std::max(total - ticks_before(down[d].seconds, total), rises)});
    below = height;
    if (up[u].height == height) ++u;
    if (down[d].height == height) ++d;
  }
  return levels;
}

/// `whole` bytes in all: more or less of them at the bottom.
void fit_to(Bytes whole, Ticks total, std::vector<ActivationLevel>& levels) {
  Bytes sum{0};
  for (const ActivationLevel& level : levels) sum += level.bytes;
  if (whole > sum && levels.empty()) levels.push_back({{}, {}, total});
  if (whole > sum) levels.front().bytes += whole - sum;
  for (Bytes excess = sum - whole; excess.value > 0;) {
    const Bytes off = std::min(excess, levels.front().bytes);
    levels.front().bytes -= off;
    excess -= off;
    if (levels.front().bytes.value == 0) levels.erase(levels.begin());
  }
}

/// Bytes x time that joining `upper` with the level below it adds.
double cost_of(const ActivationLevel& lower, const ActivationLevel& upper) {
  const Ticks longer = (upper.rises - lower.rises) + (lower.falls - upper.falls);
  return static_cast<double>(upper.bytes.value) * static_cast<double>(longer.value);
}

void coarsen(std::size_t most, std::vector<ActivationLevel>& levels) {
  while (levels.size() > most) {
    std::size_t best = 1;
    for (std::size_t i = 2; i < levels.size(); ++i)
      if (cost_of(levels[i - 1], levels[i]) < cost_of(levels[best - 1], levels[best])) best = i;
    levels[best - 1].bytes += levels[best].bytes;
    levels.erase(levels.begin() + static_cast<std::ptrdiff_t>(best));
  }
}

}  // namespace

std::vector<ActivationLevel> levels_of(const std::vector<ActivationStretch>& stretches, Ticks total, Bytes whole,
                                       std::size_t most_levels) {
  EBB_ASSERT(most_levels > 0);
  std::vector<ActivationLevel> levels = all_levels(stretches, total);
  fit_to(whole, total, levels);
  coarsen(most_levels, levels);
  return levels;
}

ActivationLevels activation_levels(const Job& job, const StageLayout& stage, const ComputeTime& compute,
                                   const Footprint& footprint, std::size_t most_levels) {
  ActivationLevels result;
  result.forward = to_ticks(compute.forward);
  result.backward = to_ticks(compute.backward);
  result.levels = levels_of(activation_stretches(job, stage, compute), result.forward + result.backward,
                            footprint.activations + footprint.logits, most_levels);
  return result;
}

}  // namespace ebb
