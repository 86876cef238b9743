#include "planner/candidate_report.hpp"

#include "planner/paste_forms.hpp"

namespace ebb {

reports::Candidate report_of(const Answer& answer) {
  const Candidate& c = answer.candidate;
  reports::Candidate report;
  report.policy = name_of(c.policy);
  if (uses_chunk_numel(c.policy)) report.chunk_numel = c.chunk_numel;
  if (c.policy == Policy::windowed) report.chunk_size_mb = c.chunk_size_mb;
  if (c.policy == Policy::windowed || c.policy == Policy::cpu_adam) report.fraction = c.fraction;
  if (c.policy == Policy::pipelined) report.slots = c.slots;
  if (c.cap.value > 0) report.cap = c.cap;
  report.live_cap = answer.cap;
  report.cap_keeps = answer.cap_keeps;
  report.flags = answer.flags;
  report.forms = paste_forms(c, answer.flags);
  report.requirement = answer.requires_megatron;
  report.takers = takers_of(c.policy);
  report.deployable = answer.deployable;
  report.feasible = answer.feasible();
  report.device_peak = answer.device_peak;
  report.device_reserved = answer.device_reserved;
  report.device_reserved_likely = answer.device_reserved_likely;
  report.deciding_phase = name_of(answer.decides);
  report.device_resume = answer.device_resume;
  report.device_between_steps = answer.device_between_steps;
  for (const Term& term : answer.device_terms) report.device_terms.push_back({term.name, term.bytes});
  report.host_pinned_per_rank = answer.host_pinned_per_rank;
  report.host_pinned_per_host = answer.host_pinned_per_host;
  report.host_pinned_per_socket = answer.host_pinned_per_socket;
  report.host_pageable_per_host = answer.host_pageable_per_host;
  report.host_deciding_phase = name_of(answer.host_decides);
  report.optimizer = answer.optimizer;
  report.step = answer.step;
  report.slowdown = answer.slowdown;
  report.first_step = answer.first_step;
  report.second_step = answer.second_step;
  report.first_steps_pinned = answer.first_steps_pinned;
  report.reason = answer.reason;
  return report;
}

}  // namespace ebb
