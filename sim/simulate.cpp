// One simulation in storage of its own. Who simulates many plans keeps a Simulator (simulator.hpp).
#include "sim/simulate.hpp"

#include "sim/simulator.hpp"

namespace ebb::sim {

Timeline simulate(const Plan& plan, const Cluster& cluster, const Sharing& sharing) {
  Timeline timeline;
  Simulator().run(plan, cluster, sharing, timeline);
  return timeline;
}

}  // namespace ebb::sim
