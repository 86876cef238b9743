// AllocationTrace: what one rank's training process asks torch's caching allocator for, tensor by tensor, part after
// part of the job's life: building the model, a checkpoint's load, the first step, a steady one, and on request a
// skipped step and a save. What the allocator makes of it (reserved memory) is reserved.hpp's.
//
// Why a second account beside the Plan: reserved memory depends on the sizes and the order of single tensors, of which
// a Plan keeps sums only. Both must agree in what is live (tests/planner/reserved_test.cpp).
//
// Not here: streams. Megatron-LM allocates everything on the current stream; another stream that still reads a storage
// (record_stream) shows as a `leave`, whose storage is free again at the matching `end`.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/plan.hpp"
#include "models/policy.hpp"
#include "models/units.hpp"
#include "planner/lower.hpp"
#include "planner/memory_term.hpp"

namespace ebb {

struct AllocationEvent {
  enum class Kind : std::uint8_t {
    allocate,  // `tensor` comes to life with `bytes`
    release,   // its storage is free
    leave,     // it is gone for the process, but its storage is in use until `end`
    end,       // what left as `tensor` can be given out again
  };
  Kind kind = Kind::allocate;
  MemoryTerm term = MemoryTerm::other;  // allocate only
  std::uint32_t tensor = 0;
  Bytes bytes{0};  // allocate only
};
static_assert(sizeof(AllocationEvent) == 16);  // a trace has a million of them

/// From `event` on, the part is in `phase`. Forward and backward alternate with the micro-batches.
struct PhaseMark {
  Phase phase = Phase::forward;
  std::uint32_t event = 0;
};

/// The rank's clock at an event: seconds since the step began, in forward and backward.
struct ClockMark {
  std::uint32_t event = 0;
  Seconds at{0};
};

struct TracePart {
  Phase phase = Phase::init;  // Phase::step: a whole steady step
  std::vector<AllocationEvent> events;
  std::vector<PhaseMark> marks;  // whole_life only: of steps
  std::vector<ClockMark> clock;  // likewise
};

/// In order: init, [load], first_step, step, [save, step]; with whole_life: init, [load], first_step, step, skip, step,
/// save, step. A step ends with the tensors alive that it began with, but for what a load or save before it left.
struct AllocationTrace {
  std::vector<TracePart> parts;
  std::uint32_t tensors = 0;  // they are numbered below this; numbers are reused

  /// The first part of that phase; nullptr when there is none.
  const TracePart* find(Phase phase) const {
    for (const TracePart& part : parts)
      if (part.phase == phase) return &part;
    return nullptr;
  }
};

struct TraceOptions {
  std::optional<Start> start;  // instead of the job's
  /// Every part of the life, with marks. Otherwise only what decides whether the job fits: a load where the job starts
  /// with one, a save where it allocates.
  bool whole_life = false;
};

/// The trace of `rank` under `candidate`. Of many equal micro-batches it holds those that fill the pipeline and two
/// more. Precondition: as for lower().
AllocationTrace allocation_trace(const RankModel& rank, const Candidate& candidate, const TraceOptions& options = {});
/// The same into `trace`, whose memory is reused.
void allocation_trace_into(const RankModel& rank, const Candidate& candidate, const TraceOptions& options,
                           AllocationTrace& trace);

}  // namespace ebb
