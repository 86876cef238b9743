// GraphStretch: the part of an optimizer step that can be one CUDA graph.
//
// A graph cannot wait for the host, and its buffers must be there: so all copies and kernels of Phase::step must follow
// each other without an op of the host, an allocation or a release in between. That holds for resident, full-reload
// and pipelined; chunked and cpu-adam wait on the host, windowed works there between chunks.
// Not here: CUDA (step_graph.hpp).
#pragma once

#include <cstdint>
#include <string>

#include "models/plan.hpp"

namespace ebb::replay {

struct GraphStretch {
  std::uint32_t first = 0;  // ops [first, last); empty: no graph
  std::uint32_t last = 0;
  std::string why_not;  // where it is empty

  bool empty() const { return first == last; }
  bool holds(std::uint32_t op) const { return op >= first && op < last; }
};

GraphStretch graph_stretch(const Plan& plan);

}  // namespace ebb::replay
