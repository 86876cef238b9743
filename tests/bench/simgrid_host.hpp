// run_simgrid: GPUs of one host that run the same Plan of copies and kernels each, in SimGrid.
//
// SimGrid is told what Ebb's simulator computes with:
//   - network model CM02, pure max-min: no TCP window (gamma), no bandwidth or latency factor, no weight by round-trip
//     time (weight-S), no cross traffic, so that what it adds for TCP is out of the way;
//   - a copy is a communication over the links of sim/copy_rates.cpp (its direction, both directions, the host one way,
//     the host both ways); the copy's latency is that of its direction's link, in which nothing is loaded;
//   - a kernel is an execution as long as sim::OpCost says;
//   - streams and copy engines are FIFO.
//
// There are two ways to say the last in SimGrid, and their speeds differ by orders of magnitude either way: activities
// that depend on each other and nobody who waits for them (its time per activity grows with the plan: SimGrid 3.32
// takes each that ends out of a list of all), and an actor for each stream that runs one op after another and waits at
// semaphores for other streams (each wait is a switch between actors, and actors cost a little to start).
//
// Not here: weights (HostLink::d2h_weight other than 1) and any other op.
#pragma once

#include <cstddef>

#include "models/cluster.hpp"
#include "models/plan.hpp"

namespace ebb::bench {

enum class Style { activities, actors };

struct Result {
  double makespan = 0;  // s, simulated
  double seconds = 0;   // s, of one simulation, without building what is simulated
  std::size_t ops = 0;  // that were simulated

  double ops_per_second() const { return static_cast<double>(ops) / seconds; }
};

/// `gpus` ranks of one host with `plan` each. Runs in a process of its own, since a SimGrid engine cannot be taken
/// down. No ops in the result: it took longer than `limit` seconds, or failed. Precondition: the plan's first op is a
/// copy, and all its copies are in as many pieces.
Result run_simgrid(const Plan& plan, const Cluster& cluster, int gpus, Style style, unsigned limit);

}  // namespace ebb::bench
