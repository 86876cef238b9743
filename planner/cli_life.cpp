// From a Life to what reports print of it.
#include "planner/cli.hpp"

namespace ebb::cli {

namespace {

reports::Phase report_of(const LifePhase& phase) {
  reports::Phase report;
  report.name = name_of(phase.phase);
  report.variant = phase.variant;
  report.later = phase.later;
  report.in_step = phase.phase == Phase::forward || phase.phase == Phase::backward || phase.phase == Phase::finalize ||
                   phase.phase == Phase::step || phase.phase == Phase::gather;
  report.rank = phase.rank;
  report.duration = phase.seconds;
  report.exposed = phase.exposed;
  report.stored = phase.stored;
  report.storage_known = phase.storage_known;
  report.device_peak = phase.device_peak;
  report.device_reserved_likely = phase.device_reserved;
  report.device_reserved = phase.device_bound;
  report.device_upper = phase.device_upper;
  report.allocated_after = phase.allocated_after;
  report.reserved_after = phase.reserved_after;
  for (const Term& term : phase.uncertainty) report.uncertainty.push_back({term.name, term.bytes});
  for (const LifeTerm& term : phase.terms)
    report.terms.push_back({std::string(name_of(term.term)), term.bytes, term.origin});
  report.host_pinned = phase.host.pinned;
  report.host_pageable = phase.host.pageable;
  report.host_pinned_per_host = phase.host.pinned_per_host;
  report.host_pageable_per_host = phase.host.pageable_per_host;
  report.host_pinned_per_node = phase.host.pinned_per_node;
  return report;
}

}  // namespace

std::vector<reports::Phase> report_of(const Life& life) {
  std::vector<reports::Phase> phases;
  for (const LifePhase& phase : life.phases) phases.push_back(report_of(phase));
  return phases;
}

reports::Curve curve_of(const Job& job, const Life& life) {
  reports::Curve curve{.rank = life.curve_rank,
                       .micro_batches = life.curve_micro_batches,
                       .of_micro_batches = job.micro_batches(),
                       .points = {}};
  for (const CurvePoint& point : life.curve) curve.points.push_back({point.at, point.bytes});
  return curve;
}

}  // namespace ebb::cli
