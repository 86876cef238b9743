#include "planner/windowed_parts.hpp"

#include <fmt/format.h>

#include "models/errors.hpp"
#include "models/memory/torch_allocator.hpp"
#include "planner/chunking.hpp"

namespace ebb {

namespace {

void chunk_parts(const RankModel& rank, std::int64_t chunk_size_mb, std::vector<WindowedPart>& parts) {
  std::uint32_t number = 0;
  for (WindowedPart& part : parts) {
    std::int64_t begin = part.moves.range.begin;
    const std::int64_t moment_bytes = rank.job->precision.moment_bytes();
    for (const Chunk& chunk : chunk_by_moments(part.moves.shards, chunk_size_mb, moment_bytes)) {
      const std::int64_t end = begin + chunk.numel.value;
      part.chunks.push_back({part.moves.shards.subspan(chunk.first, chunk.count), {begin, end}, number++});
      begin = end;
    }
  }
}

/// The first manager's buffers have plain names.
std::string numbered(const char* name, std::size_t number) {
  return number == 0 ? std::string(name) : fmt::format("{} {}", name, number);
}

}  // namespace

std::vector<WindowedPart> windowed_parts(const RankModel& rank, std::int64_t chunk_size_mb, double fraction) {
  std::vector<WindowedPart> parts;
  const std::span<const Shard> shards(rank.shards);
  const std::vector<bool> moves = offloaded_by_fraction(shards, fraction, rank.job->precision.state_bytes());
  std::int64_t begin = 0;
  for (std::size_t first = 0; first < shards.size();) {
    std::size_t cut = first;
    while (cut < shards.size() && shards[cut].optimizer == shards[first].optimizer && moves[cut]) ++cut;
    std::size_t end = cut;
    while (end < shards.size() && shards[end].optimizer == shards[first].optimizer) {
      EBB_ASSERT(!moves[end]);  // what moves comes first in each optimizer
      ++end;
    }
    WindowedPart part;
    part.moves = {shards.subspan(first, cut - first), {}};
    part.stays = {shards.subspan(cut, end - cut), {}};
    part.moves.range = {begin, begin + owned(part.moves.shards).value};
    part.stays.range = {part.moves.range.end, part.moves.range.end + owned(part.stays.shards).value};
    begin = part.stays.range.end;
    parts.push_back(std::move(part));
    first = end;
  }
  chunk_parts(rank, chunk_size_mb, parts);
  return parts;
}

Bytes moment_window_bytes(const Precision& precision, std::span<const Shard> shards) {
  std::int64_t sum = 0;
  for (const Shard& shard : shards) {
    sum += round_up(bytes_of(shard.numel, size_of(precision.exp_avg)).value, 256);
    sum += round_up(bytes_of(shard.numel, size_of(precision.exp_avg_sq)).value, 256);
  }
  return memory::allocated_bytes({sum});
}

DeviceState moved_masters(PlanBuilder& plan, const Precision& precision, const WindowedPart& part, std::size_t number) {
  const std::string name = numbered("master weights", number);
  return device_state(plan, precision, part.moves, kMaster, {.masters = name}, Phase::forward);
}

DeviceState kept_state(PlanBuilder& plan, const Precision& precision, const WindowedPart& part, std::size_t number) {
  const std::string moments = numbered("kept moments", number);
  const std::string masters = numbered("kept masters", number);
  return device_state(plan, precision, part.stays, kAllState, {.moments = moments, .masters = masters});
}

}  // namespace ebb
