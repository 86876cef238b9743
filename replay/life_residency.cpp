#include "replay/life_residency.hpp"

#include <algorithm>
#include <cmath>

namespace ebb::replay {

namespace {

constexpr std::int64_t kTensorAlignment = 256;
constexpr std::int64_t kRounding = 512;

bool is_state(const Buffer& buffer, std::uint8_t states) {
  return buffer.memory == Memory::device && buffer.role == Role::state && (buffer.states & states) != 0;
}

struct Window {
  Numel numel{0};
  std::int64_t tensors = 0;  // of one state
};

/// The most that whole shards in a row can fill of a chunk of `limit` elements: one larger shard alone, or the most
/// shards that begin in any `limit` elements.
Window largest_window(const Plan& plan, Numel limit) {
  Window window{limit, 0};
  std::int64_t sum = 0;
  std::size_t first = 0;
  for (std::size_t last = 0; last < plan.shards.size(); ++last) {
    window.numel = std::max(window.numel, plan.shards[last].numel);
    sum += plan.shards[last].numel.value;
    while (first < last && sum > limit.value) sum -= plan.shards[first++].numel.value;
    window.tensors = std::max(window.tensors, static_cast<std::int64_t>(last - first) + 1);
  }
  return window;
}

Bytes bytes_of(const Window& window, std::int64_t per_element, int states) {
  return {window.numel.value * per_element + window.tensors * states * kTensorAlignment + states * kRounding};
}

Numel owned(const Plan& plan) {
  Numel sum{0};
  for (const PlanShard& shard : plan.shards) sum += shard.numel;
  return sum;
}

std::int64_t managers(const Plan& plan) {
  const auto expert = [](const PlanBucket& bucket) { return bucket.expert; };
  const bool some = std::any_of(plan.buckets.begin(), plan.buckets.end(), expert);
  return some && !std::all_of(plan.buckets.begin(), plan.buckets.end(), expert) ? 2 : 1;
}

Bytes windowed_bound(const Plan& plan) {
  const Precision& types = plan.precision;
  const Candidate& candidate = plan.candidate;
  const Window all{owned(plan), static_cast<std::int64_t>(plan.shards.size())};
  Window chunk = all;
  if (candidate.chunk_size_mb > 0)
    chunk = largest_window(plan, {candidate.chunk_size_mb * (std::int64_t{1} << 20) / types.moment_bytes()});
  chunk.numel = std::min(chunk.numel, all.numel);
  // Whole shards stay, from the last on: the one at the border stays whole.
  Numel largest{0};
  for (const PlanShard& shard : plan.shards) largest = std::max(largest, shard.numel);
  Window stays{{0}, 0};
  if (candidate.fraction < 1) {
    const double part = (1 - candidate.fraction) * static_cast<double>(all.numel.value);
    stays = {std::min(all.numel, Numel{static_cast<std::int64_t>(std::ceil(part))} + largest), all.tensors};
  }
  return bytes_of(all, types.master_bytes(), 1) + bytes_of(stays, types.moment_bytes(), 2) +
         Bytes{2 * managers(plan) * bytes_of(chunk, types.moment_bytes(), 2).value};
}

}  // namespace

namespace {

/// Calls see(state, all): live device bytes of state and of everything, at first and after each op that changes them.
template <class See>
void walk_live(const Plan& plan, std::uint8_t states, See see) {
  Bytes state{0};
  Bytes all{0};
  const auto add = [&](const Buffer& buffer, std::int64_t sign) {
    if (buffer.memory != Memory::device) return;
    all += Bytes{sign * buffer.bytes.value};
    if (is_state(buffer, states)) state += Bytes{sign * buffer.bytes.value};
  };
  for (const Buffer& buffer : plan.buffers)
    if (buffer.initial) add(buffer, 1);
  see(state, all);
  for (const Op& op : plan.ops) {
    if (op.kind != OpKind::allocate && op.kind != OpKind::release) continue;
    add(plan.buffers[op.buffer.index], op.kind == OpKind::allocate ? 1 : -1);
    see(state, all);
  }
}

}  // namespace

Bytes state_peak(const Plan& plan, std::uint8_t states) {
  Bytes peak{0};
  walk_live(plan, states, [&](Bytes state, Bytes) { peak = std::max(peak, state); });
  return peak;
}

Bytes state_at_peak(const Plan& plan, std::uint8_t states) {
  Bytes peak{-1};
  Bytes there{0};
  walk_live(plan, states, [&](Bytes state, Bytes all) {
    if (all < peak || (all == peak && state >= there)) return;
    peak = all;
    there = state;
  });
  return there;
}

std::optional<Bytes> state_bound(const Plan& plan) {
  const Candidate& candidate = plan.candidate;
  const std::int64_t per_element = plan.precision.state_bytes();
  switch (candidate.policy) {
    case Policy::chunked:
      return bytes_of(largest_window(plan, candidate.chunk_numel), per_element, 3);
    case Policy::windowed:
      return windowed_bound(plan);
    case Policy::pipelined:
      return Bytes{candidate.slots * (candidate.chunk_numel.value * per_element + kRounding)};
    case Policy::resident:
    case Policy::full_reload:
    case Policy::cpu_adam:
    case Policy::tidal:  // as much as a cap on all live bytes leaves
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace ebb::replay
