#include "planner/checkpoint_staging.hpp"

#include <algorithm>
#include <bit>

namespace ebb {

namespace {

template <class Visit>
void for_each_window(ElementRange range, Visit visit) {
  for (std::int64_t begin = range.begin; begin < range.end; begin += kCheckpointWindow)
    visit(ElementRange{begin, std::min(begin + kCheckpointWindow, range.end)});
}

}  // namespace

CheckpointStaging::CheckpointStaging(PlanBuilder& plan, const RankModel& rank, Numel most, std::int64_t most_bytes)
    : plan_(plan), bytes_(bytes_of(std::min(most, Numel{kCheckpointWindow}), most_bytes)) {
  std::int64_t at = 0;
  for (const Shard& shard : rank.shards) {
    begins_.push_back(at);
    at += shard.numel.value;
  }
}

BufferId CheckpointStaging::next_stage() {
  if (!stages_[0].valid()) {
    stages_[0] = plan_.buffer("checkpoint 0", Memory::pinned, bytes_, true);
    stages_[1] = plan_.buffer("checkpoint 1", Memory::pinned, bytes_, true);
    for (const BufferId stage : stages_) plan_.role(stage, Role::checkpoint);
  }
  return stages_[windows_++ % stages_.size()];
}

/// How many shards have elements in a range that is not empty.
std::uint32_t CheckpointStaging::pieces(ElementRange range) const {
  const auto first = std::upper_bound(begins_.begin(), begins_.end(), range.begin);
  const auto end = std::lower_bound(first, begins_.end(), range.end);
  return static_cast<std::uint32_t>(end - first) + 1;
}

void CheckpointStaging::store(std::uint8_t states, ElementRange range, std::int64_t size, BufferId buffer) {
  for_each_window(range, [&](ElementRange window) {
    if (pending_.size() == stages_.size()) store_oldest();
    const BufferId stage = next_stage();
    const Bytes bytes = bytes_of(window.numel(), size);
    const OpId copy = plan_.add({.kind = OpKind::copy_d2h,
                                 .phase = Phase::save,
                                 .states = states,
                                 .stream = kD2h,
                                 .calls = pieces(window) * static_cast<std::uint32_t>(std::popcount(states)),
                                 .buffer = buffer,
                                 .host_buffer = stage,
                                 .bytes = bytes,
                                 .range = window});
    pending_.push_back({copy,
                        {.kind = OpKind::host_work,
                         .phase = Phase::save,
                         .work = Work::store,
                         .states = states,
                         .stream = kHost,
                         .host_buffer = stage,
                         .bytes = bytes,
                         .range = window}});
  });
}

void CheckpointStaging::store_oldest() {
  plan_.add(pending_.front().store, {pending_.front().copy});
  pending_.pop_front();
}

void CheckpointStaging::finish() {
  while (!pending_.empty()) store_oldest();
}

OpId CheckpointStaging::fetch(std::uint8_t states, ElementRange range, std::int64_t size, BufferId buffer, OpId room) {
  OpId last = room;
  for_each_window(range, [&](ElementRange window) {
    OpId& emptied = emptied_[windows_ % stages_.size()];
    const BufferId stage = next_stage();
    const Bytes bytes = bytes_of(window.numel(), size);
    const OpId fetched = plan_.add({.kind = OpKind::host_work,
                                    .phase = Phase::load,
                                    .work = Work::fetch,
                                    .states = states,
                                    .stream = kHost,
                                    .host_buffer = stage,
                                    .bytes = bytes,
                                    .range = window},
                                   {emptied});
    last = plan_.add({.kind = OpKind::copy_h2d,
                      .phase = Phase::load,
                      .states = states,
                      .stream = kH2d,
                      .calls = pieces(window) * static_cast<std::uint32_t>(std::popcount(states)),
                      .buffer = buffer,
                      .host_buffer = stage,
                      .bytes = bytes,
                      .range = window},
                     {fetched, room});
    emptied = last;
  });
  return last;
}

}  // namespace ebb
