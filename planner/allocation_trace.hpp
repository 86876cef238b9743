// AllocationTrace: what one rank's training process asks torch's caching allocator for, tensor by tensor, from building
// the model to the steady step. What the allocator makes of it (reserved memory) is reserved.hpp's.
//
// Why a second account beside the Plan: reserved memory depends on the sizes and the order of single tensors, of which
// a Plan keeps sums only. Both must agree in what is live (tests/planner/reserved_test.cpp).
//
// Not here: streams. Megatron-LM allocates everything on the current stream; another stream that still reads a storage
// (record_stream) shows as a `leave`, whose storage is free again at the matching `end`.
#pragma once

#include <cstdint>
#include <vector>

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
  std::uint32_t tensor = 0;
  Bytes bytes{0};                       // allocate only
  MemoryTerm term = MemoryTerm::other;  // allocate only
};

struct AllocationTrace {
  std::vector<AllocationEvent> init;        // model, buffers, master weights
  std::vector<AllocationEvent> first_step;  // creates what is created on first use: workspaces, moments
  std::vector<AllocationEvent> later_step;  // every step after it: ends with the tensors alive that it began with
  std::uint32_t tensors = 0;                // they are numbered below this; numbers are reused
};

/// The trace of `rank` under `candidate`. Of many equal micro-batches it holds those that fill the pipeline and two
/// more. Precondition: as for lower().
AllocationTrace allocation_trace(const RankModel& rank, const Candidate& candidate);

}  // namespace ebb
