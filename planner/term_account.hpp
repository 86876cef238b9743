// TermAccount: what is alive on the device, term by term, at one moment of an AllocationTrace. Terms add up what
// tensors ask for; what torch's caching allocator adds by rounding is not theirs (reserved.hpp has the sum).
#pragma once

#include <array>
#include <span>

#include "planner/allocation_trace.hpp"

namespace ebb {

struct TermAccount {
  std::array<Bytes, kMemoryTerms> bytes{};

  Bytes of(MemoryTerm term) const { return bytes[static_cast<std::size_t>(term)]; }
  Bytes total() const {
    Bytes sum{0};
    for (const Bytes b : bytes) sum += b;
    return sum;
  }
};

/// What is alive after a later step: between steps, with state.
TermAccount terms_between_steps(const AllocationTrace& trace);
/// What is alive at the highest moment since the process started.
TermAccount terms_at_peak(const AllocationTrace& trace);

}  // namespace ebb
