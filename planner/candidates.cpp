#include "planner/candidates.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/errors.hpp"
#include "planner/chunking.hpp"

namespace ebb {

std::int64_t roundest(std::int64_t low, std::int64_t high, std::int64_t base) {
  EBB_ASSERT(0 <= low && low < high && base >= 2);
  std::int64_t best = low;
  for (std::int64_t step = base; step < high; step *= base) {
    const std::int64_t multiple = std::max(round_up(low, step), step);
    if (multiple >= high) break;  // a multiple of a larger power would be one of this power too
    best = multiple;
    if (step > high / base) break;  // the next power is too large, perhaps for the type
  }
  return best;
}

namespace {

template <class T>
void sort_unique(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

/// At most about `most` of the ascending breakpoints: neighbours that are kept lie at least a common ratio apart. The
/// first and the last stay.
template <class T, class Value>
std::vector<T> thinned(const std::vector<T>& breakpoints, std::size_t most, Value value) {
  if (breakpoints.size() <= most) return breakpoints;
  const auto at = [&](const T& breakpoint) { return std::max(static_cast<double>(value(breakpoint)), 1.0); };
  const double ratio = std::pow(at(breakpoints.back()) / at(breakpoints.front()), 1.0 / static_cast<double>(most));
  std::vector<T> kept = {breakpoints.front()};
  for (const T& breakpoint : breakpoints)
    if (at(breakpoint) >= at(kept.back()) * ratio) kept.push_back(breakpoint);
  if (kept.back() != breakpoints.back()) kept.push_back(breakpoints.back());
  return kept;
}

/// Where the last interval, which has no end, is cut: enough room for a value with one significant digit.
std::int64_t last_end(std::int64_t low, std::int64_t base) {
  std::int64_t power = 1;
  while (power <= low / base) power *= base;
  return round_up(low, power) + 1;
}

std::vector<std::int64_t> round_values(std::vector<std::int64_t> breakpoints, std::int64_t base) {
  sort_unique(breakpoints);
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < breakpoints.size(); ++i) {
    const std::int64_t low = breakpoints[i];
    const std::int64_t high = i + 1 < breakpoints.size() ? breakpoints[i + 1] : last_end(low, base);
    values.push_back(roundest(low, high, base));
  }
  return values;
}

}  // namespace

std::vector<Numel> round_numels(const std::vector<Numel>& breakpoints) {
  std::vector<std::int64_t> plain;
  for (const Numel breakpoint : breakpoints) plain.push_back(std::max<std::int64_t>(breakpoint.value, 1));
  std::vector<Numel> values;
  for (const std::int64_t value : round_values(std::move(plain), 10)) values.push_back({value});
  return values;
}

std::vector<std::int64_t> round_sizes_mb(std::vector<std::int64_t> breakpoints) {
  for (std::int64_t& breakpoint : breakpoints) breakpoint = std::max<std::int64_t>(breakpoint, 1);
  std::vector<std::int64_t> values = round_values(std::move(breakpoints), 2);
  values.insert(values.begin(), 0);
  return values;
}

namespace {

bool too_many(std::span<const std::vector<Shard>> ranks) {
  return std::any_of(ranks.begin(), ranks.end(), [](const auto& shards) { return shards.size() > kMostPackedShards; });
}

Numel most_owned(std::span<const std::vector<Shard>> ranks) {
  Numel most{0};
  for (const auto& shards : ranks) most = std::max(most, owned(shards));
  return most;
}

/// 1, 2, 5, 10, 20, ... up to the first that is not below `last`.
std::vector<Numel> coarse_numels(Numel last) {
  std::vector<Numel> values;
  for (std::int64_t power = 1; values.empty() || values.back() < last; power *= 10)
    for (const std::int64_t digit : {1, 2, 5}) values.push_back({digit * power});
  return values;
}

/// The interval that holds the production size is represented by it.
std::vector<Numel> chunk_numels(const Job& job, std::span<const std::vector<Shard>> ranks) {
  if (job.offload.chunk_numel) return {*job.offload.chunk_numel};
  if (too_many(ranks)) return coarse_numels(std::max(most_owned(ranks), kProductionNumel));
  std::vector<Numel> breakpoints;
  for (const auto& shards : ranks) {
    const std::vector<Numel> more = numel_breakpoints(shards);
    breakpoints.insert(breakpoints.end(), more.begin(), more.end());
  }
  sort_unique(breakpoints);
  breakpoints = thinned(breakpoints, kMostNumels, [](Numel n) { return n.value; });
  const auto above = std::upper_bound(breakpoints.begin(), breakpoints.end(), kProductionNumel);
  std::vector<Numel> values = round_numels(breakpoints);
  const auto holder = static_cast<std::size_t>(above - breakpoints.begin());
  if (holder > 0)
    values[holder - 1] = kProductionNumel;
  else
    values.insert(values.begin(), kProductionNumel);
  sort_unique(values);
  return values;
}

std::vector<std::int64_t> chunk_sizes_mb(const Job& job, std::span<const std::vector<Shard>> ranks) {
  if (job.offload.chunk_size_mb) return {*job.offload.chunk_size_mb};
  std::vector<std::int64_t> breakpoints;
  if (too_many(ranks)) {
    const Bytes moments = bytes_of(most_owned(ranks), job.precision.moment_bytes());
    for (std::int64_t size = 1; size <= moments.value >> 20; size *= 2) breakpoints.push_back(size);
    breakpoints.insert(breakpoints.begin(), 0);
    return breakpoints;
  }
  for (const auto& shards : ranks) {
    const auto more = moment_breakpoints_mb(shards, job.precision.moment_bytes());
    breakpoints.insert(breakpoints.end(), more.begin(), more.end());
  }
  sort_unique(breakpoints);
  breakpoints = thinned(breakpoints, kMostSizesMb, [](std::int64_t mb) { return mb; });
  return round_sizes_mb(std::move(breakpoints));
}

std::vector<double> fractions(const Job& job) {
  if (job.offload.fraction) return {*job.offload.fraction};
  std::vector<double> values;
  for (int twentieths = 1; twentieths <= 20; ++twentieths) values.push_back(twentieths / 20.0);
  return values;
}

std::vector<int> slot_counts(const Job& job) {
  if (job.offload.slots) return {*job.offload.slots};
  return {2, 3, 4};
}

std::vector<Numel> slot_numels(const Job& job, Numel owned) {
  if (job.offload.chunk_numel && ceil_div(owned.value, job.offload.chunk_numel->value) > kMostSlotChunks) return {};
  if (job.offload.chunk_numel) return {*job.offload.chunk_numel};
  std::vector<Numel> values;
  for (Numel numel{1 << 20}; values.empty() || numel < owned; numel = numel * 2)
    if (ceil_div(owned.value, numel.value) <= kMostSlotChunks) values.push_back(numel);
  return values;
}

/// Pieces large enough for the link (a copy of 16 MiB takes 300 us, its latency 3) and small enough to follow the
/// activations: 1 Mi and 4 Mi elements, 12 and 48 MiB of fp32 state.
std::vector<Numel> piece_numels(const Job& job, Numel owned) {
  std::vector<Numel> values;
  for (const Numel numel : slot_numels(job, owned))
    if (job.offload.chunk_numel || numel == Numel{1 << 20} || numel == Numel{1 << 22} || values.empty())
      values.push_back(numel);
  return values;
}

void append(std::vector<Candidate>& list, const Job& job, Policy policy, std::span<const std::vector<Shard>> ranks) {
  Candidate candidate;
  candidate.policy = policy;
  switch (policy) {
    case Policy::resident:
    case Policy::full_reload:
      list.push_back(candidate);
      return;
    case Policy::chunked:
      for (const Numel numel : chunk_numels(job, ranks)) {
        candidate.chunk_numel = numel;
        list.push_back(candidate);
      }
      return;
    case Policy::windowed: {
      const std::vector<std::int64_t> sizes = chunk_sizes_mb(job, ranks);
      for (const double fraction : fractions(job))
        for (const std::int64_t size : sizes) {
          candidate.fraction = fraction;
          candidate.chunk_size_mb = size;
          list.push_back(candidate);
        }
      return;
    }
    case Policy::cpu_adam:
      for (const double fraction : fractions(job)) {
        candidate.fraction = fraction;
        list.push_back(candidate);
      }
      return;
    case Policy::pipelined:
      for (const int slots : slot_counts(job))
        for (const Numel numel : slot_numels(job, most_owned(ranks))) {
          candidate.slots = slots;
          candidate.chunk_numel = numel;
          list.push_back(candidate);
        }
      return;
    case Policy::tidal:
      candidate.cap = job.offload.cap.value_or(Bytes{0});
      for (const Numel numel : piece_numels(job, most_owned(ranks))) {
        candidate.chunk_numel = numel;
        list.push_back(candidate);
      }
      return;
  }
}

}  // namespace

std::vector<Candidate> candidates_of(const Job& job, std::span<const std::vector<Shard>> ranks) {
  std::vector<Candidate> list;
  for (const Policy policy : kPolicies)
    if (policy == Policy::resident || !job.offload.policy || job.offload.policy == policy)
      append(list, job, policy, ranks);
  return list;
}

}  // namespace ebb
