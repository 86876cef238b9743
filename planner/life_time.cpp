// A load reads tensor by tensor into pageable memory and from there to the device; a save copies from the device to
// pageable memory, then writes. Neither overlaps with training. Source: Megatron-LM main, core/dist_checkpointing
// (strategies/torch.py, filesystem_async.py); which state passes through the device is allocation_trace_life.cpp's.
#include "planner/life_time.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/host_parts.hpp"
#include "planner/life_host.hpp"

namespace ebb {

namespace {

using Span = std::pair<std::int64_t, std::int64_t>;  // ticks

/// Sorted, without overlaps.
std::vector<Span> merged(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end());
  std::vector<Span> result;
  for (const Span& span : spans) {
    if (!result.empty() && span.first <= result.back().second)
      result.back().second = std::max(result.back().second, span.second);
    else
      result.push_back(span);
  }
  return result;
}

/// Time in [begin, end) that `covered` has and `hidden` does not.
std::int64_t visible(const std::vector<Span>& covered, const std::vector<Span>& hidden, Span window) {
  std::int64_t sum = 0;
  std::size_t next = 0;
  for (const Span& span : covered) {
    std::int64_t at = std::max(span.first, window.first);
    const std::int64_t end = std::min(span.second, window.second);
    while (next < hidden.size() && hidden[next].second <= at) ++next;
    for (std::size_t h = next; at < end; ++h) {
      const bool more = h < hidden.size() && hidden[h].first < end;
      const std::int64_t until = more ? std::max(hidden[h].first, at) : end;
      sum += until - at;
      if (!more) break;
      at = std::max(at, hidden[h].second);
    }
  }
  return sum;
}

bool moves(const OpKind kind) { return kind == OpKind::copy_h2d || kind == OpKind::copy_d2h; }
bool works(const OpKind kind) {
  return kind == OpKind::kernel || kind == OpKind::collective || kind == OpKind::compute;
}

Seconds at_storage(Bytes bytes, std::int64_t ranks, BytesPerSecond rate) {
  return std::isfinite(rate.value) ? bytes * ranks / rate : Seconds{0};
}

}  // namespace

std::vector<Seconds> exposed_transfer(const Plan& plan, const Timeline& timeline, const StepSummary& summary) {
  std::vector<Span> copies;
  std::vector<Span> work;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const Span span{timeline.start[i].value, timeline.end[i].value};
    if (moves(plan.ops[i].kind)) copies.push_back(span);
    if (works(plan.ops[i].kind)) work.push_back(span);
  }
  copies = merged(std::move(copies));
  work = merged(std::move(work));
  std::vector<Seconds> exposed;
  std::int64_t begin = 0;
  for (const PhaseSummary& phase : summary.phases) {
    const std::int64_t end = begin + phase.duration.value;
    exposed.push_back(to_seconds(Ticks{visible(copies, work, {begin, end})}));
    begin = end;
  }
  return exposed;
}

PhaseTime init_time(const RankModel& rank, const Candidate& candidate) {
  const Cluster& cluster = rank.job->cluster;
  const HostParts parts = host_parts(rank, candidate);
  PhaseTime time;
  if (candidate.policy == Policy::chunked || candidate.policy == Policy::cpu_adam) {
    time.exposed = parts.masters.asked / cluster.host_link.d2h.value;
    time.seconds = sim::pin_time(parts.masters, cluster.host) + time.exposed;
  }
  if (cuts_elements(candidate.policy)) {
    time.exposed = bytes_of(rank.owned, rank.job->precision.master_bytes()) / cluster.host_link.d2h.value;
    time.seconds = sim::pin_time(parts.region, cluster.host) + time.exposed;
  }
  return time;
}

PhaseTime load_time(const RankModel& rank, const Candidate& candidate, Start start, Bytes stored, std::int64_t ranks) {
  const Cluster& cluster = rank.job->cluster;
  const HostLink& link = cluster.host_link;
  const HostParts parts = host_parts(rank, candidate);
  const bool resumes = start == Start::resume;
  const Bytes parameters = stored_bytes(rank, rank.rank, false);
  PhaseTime time;
  time.exposed = parameters / link.pageable_h2d.value;
  const bool on_device = candidate.policy == Policy::resident || candidate.policy == Policy::full_reload ||
                         candidate.policy == Policy::chunked;
  if (resumes && on_device) time.exposed += (stored - parameters) / link.pageable_h2d.value;
  const bool leaves = candidate.policy == Policy::full_reload || candidate.policy == Policy::chunked ||
                      candidate.policy == Policy::windowed;
  if (leaves) {
    const Bytes out = parts.masters.asked + (resumes ? parts.moments.asked : Bytes{0});
    time.exposed += out / link.d2h.value;
    if (candidate.policy == Policy::chunked) time.exposed += parts.masters.asked / link.h2d.value;
    if (candidate.policy != Policy::chunked) time.seconds += sim::pin_time(parts.masters, cluster.host);
    if (resumes) time.seconds += sim::pin_time(parts.moments, cluster.host);
  }
  const BytesPerSecond rate = cluster.storage.read.value;
  time.storage_known = std::isfinite(rate.value);
  time.seconds += time.exposed + at_storage(stored, ranks, rate);
  return time;
}

PhaseTime save_time(const RankModel& rank, const Candidate& candidate, Bytes stored, std::int64_t ranks) {
  const Cluster& cluster = rank.job->cluster;
  PhaseTime time;
  time.exposed = bytes_from_device(rank, rank.rank, candidate) / cluster.host_link.pageable_d2h.value;
  const BytesPerSecond rate = cluster.storage.write.value;
  time.storage_known = std::isfinite(rate.value);
  time.seconds = time.exposed + at_storage(stored, ranks, rate);
  return time;
}

double first_step_traffic(const RankModel& rank, const Candidate& candidate) {
  const Precision& precision = rank.job->precision;
  const auto moments = static_cast<double>(precision.moment_bytes());
  const auto masters = static_cast<double>(precision.master_bytes());
  switch (candidate.policy) {
    case Policy::chunked:  // moments do not come in
    case Policy::windowed:
      return (moments + 2 * masters) / (2 * moments + 2 * masters);
    case Policy::full_reload:  // and do not leave, either, before the second step
      return masters / (moments + masters);
    case Policy::resident:
    case Policy::cpu_adam:
    case Policy::pipelined:
    case Policy::tidal:
      return 1;
  }
  return 1;
}

}  // namespace ebb
