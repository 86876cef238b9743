// The figures that a step's difference is split over. For diff_assumption.cpp alone, where the method stands.
#pragma once

#include <vector>

#include "planner/diff_assumption.hpp"
#include "planner/diff_exposure.hpp"

namespace ebb::diff_figures {

/// Both sides of a comparison.
struct Sides {
  const RankTimeline& predicted;
  const RankTimeline& measured;
  Window predicted_window;
  Window measured_window;
  Exposure in_predicted;
  Exposure in_measured;

  double difference(OpClass cls) const { return in_measured[cls] - in_predicted[cls]; }
  double difference(OpClass first, OpClass last) const;
  /// What the busy time of these classes changed by, beyond what the step is charged for.
  double hidden(OpClass first, OpClass last) const;
};

void add_compute(const Sides& sides, std::vector<Assumption>& all);
void add_collectives(const Sides& sides, std::vector<Assumption>& all);
void add_kernels(const Sides& sides, std::vector<Assumption>& all);
void add_host(const Sides& sides, std::vector<Assumption>& all);
/// Last: lost overlap goes to one of those that are there.
void add_copies(const Sides& sides, std::vector<Assumption>& all);

}  // namespace ebb::diff_figures
