// Exposure: to which class of ops each moment of a step is charged.
//
// The rule. At every moment the step is charged to exactly one class, the first of this list that has an op running:
//
//     compute, copies (both directions at once, or one alone), collectives, kernels, host work, and where none runs,
//     waiting for the host to issue the op that starts next
//
// so that the seconds of all classes add up to the step, and differences between two runs of one plan add up to the
// difference of their steps. Why this order: what comes later is what schedules hide behind what comes earlier
// (collectives and state behind compute, Adam behind copies), so that a class is charged for what it makes the step
// longer. It needs no dependencies and no critical path, which in a measured run jumps between streams with every
// microsecond of noise. Where a hidden class becomes the bottleneck, the one that hid it pauses, and the pause is
// charged to it.
// Not here: what a difference means (diff_assumption.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "models/timeline_file.hpp"

namespace ebb {

/// In order of precedence.
enum class OpClass : std::uint8_t {
  compute,
  copies_both,  // what copies_in and copies_out share; no op is of this class
  copies_in,
  copies_out,
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all,
  adam,
  adam_foreach,
  cast,
  norm_clip,  // gradient norm, clipping, zeroing
  cpu_adam,
  chunk_overhead,
  tensor_scan,
  other_host,
  wait_kernel,  // nothing runs, and a kernel is next
  wait_copy,
  wait_collective,
  wait_host,  // ... anything else is next
  none,       // takes no time of its own: allocate, release, host_wait
};
inline constexpr std::size_t kOpClasses = static_cast<std::size_t>(OpClass::none);
std::string_view name_of(OpClass cls);

OpClass class_of(const OpSpan& op);

struct Window {
  Ticks begin{0};
  Ticks end{0};
};

/// By class, in seconds.
struct Exposure {
  std::array<double, kOpClasses> exposed{};
  std::array<double, kOpClasses> busy{};

  double operator[](OpClass cls) const { return exposed[static_cast<std::size_t>(cls)]; }
};

/// O(ops log ops).
Exposure exposure_of(std::span<const OpSpan> ops, Window window);

/// The whole of it: from 0 to the last end.
Window step_window(std::span<const OpSpan> ops);
/// Phases as summarize() has them: in order of appearance, each from the end of those before it to its own last end.
std::vector<std::pair<Phase, Window>> phase_windows(std::span<const OpSpan> ops);

/// Rates of copies in bytes a second, alone and while the other direction runs; 0 where there is too little time of
/// that kind to tell. Each copy moves bytes = alone * (its seconds alone) + both * (its seconds beside the other
/// direction); solved by least squares.
struct CopyRegimes {
  double alone = 0;
  double both = 0;
  double seconds_alone = 0;
  double seconds_both = 0;
};
CopyRegimes copy_regimes(std::span<const OpSpan> ops, OpKind direction);

}  // namespace ebb
