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

CheckpointStaging::CheckpointStaging(PlanBuilder& plan, const RankModel& rank, Phase phase, std::int64_t most_bytes)
    : plan_(plan),
      rank_(rank),
      phase_(phase),
      bytes_(bytes_of(std::min(rank.owned, Numel{kCheckpointWindow}), most_bytes)) {
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

void CheckpointStaging::store_window(const Moved& moved, ElementRange window, OpId ready) {
  if (pending_.size() == stages_.size()) store_oldest();
  const BufferId stage = next_stage();
  const Bytes bytes = bytes_of(window.numel(), moved.size);
  const OpId copy = plan_.add({.kind = OpKind::copy_d2h,
                               .phase = phase_,
                               .states = moved.states,
                               .stream = kD2h,
                               .calls = pieces(window) * static_cast<std::uint32_t>(std::popcount(moved.states)),
                               .buffer = moved.buffer,
                               .host_buffer = stage,
                               .bytes = bytes,
                               .range = window},
                              {ready});
  pending_.push_back({copy,
                      {.kind = OpKind::host_work,
                       .phase = phase_,
                       .work = Work::store,
                       .states = moved.states,
                       .stream = kHost,
                       .host_buffer = stage,
                       .bytes = bytes,
                       .range = window}});
}

void CheckpointStaging::store(std::uint8_t states, ElementRange range, std::int64_t size, BufferId buffer) {
  for_each_window(range, [&](ElementRange window) { store_window({states, size, buffer}, window, OpId::none()); });
}

void CheckpointStaging::store_dequantized(ElementRange range, std::int64_t size, BufferId dequantized) {
  for_each_window(range, [&](ElementRange window) {
    const OpId ready = plan_.add({.kind = OpKind::kernel,
                                  .phase = phase_,
                                  .work = Work::dequantize,
                                  .states = kParams,
                                  .stream = kComputeStream,
                                  .calls = pieces(window),
                                  .buffer = dequantized,
                                  .bytes = bytes_of(window.numel(), 1 + size),
                                  .range = window},
                                 {plan_.last_on(kD2h)});
    store_window({kParams, size, dequantized}, window, ready);
  });
}

void CheckpointStaging::store_oldest() {
  plan_.add(pending_.front().store, {pending_.front().copy});
  pending_.pop_front();
}

void CheckpointStaging::finish() {
  while (!pending_.empty()) store_oldest();
}

OpId CheckpointStaging::bring(Work work, const Moved& moved, ElementRange range, OpId room) {
  OpId last = room;
  for_each_window(range, [&](ElementRange window) {
    OpId& emptied = emptied_[windows_ % stages_.size()];
    const BufferId stage = next_stage();
    const Bytes bytes = bytes_of(window.numel(), moved.size);
    const OpId filled = plan_.add({.kind = OpKind::host_work,
                                   .phase = phase_,
                                   .work = work,
                                   .states = moved.states,
                                   .stream = kHost,
                                   .host_buffer = stage,
                                   .bytes = bytes,
                                   .range = window},
                                  {emptied});
    last = plan_.add({.kind = OpKind::copy_h2d,
                      .phase = phase_,
                      .states = moved.states,
                      .stream = kH2d,
                      .calls = pieces(window) * static_cast<std::uint32_t>(std::popcount(moved.states)),
                      .buffer = moved.buffer,
                      .host_buffer = stage,
                      .bytes = bytes,
                      .range = window},
                     {filled, room});
    emptied = last;
  });
  return last;
}

OpId CheckpointStaging::fetch(std::uint8_t states, ElementRange range, std::int64_t size, BufferId buffer, OpId room) {
  return bring(Work::fetch, {states, size, buffer}, range, room);
}

OpId CheckpointStaging::make_masters(ElementRange range, BufferId buffer, OpId room) {
  return bring(Work::make_masters, {kMaster, rank_.job->precision.master_bytes(), buffer}, range, room);
}

}  // namespace ebb
