#include "planner/life_replay.hpp"

#include <algorithm>
#include <span>

#include "models/errors.hpp"
#include "models/memory/caching_allocator.hpp"

namespace ebb {

namespace {

constexpr int kMostSteps = 6;

class Replay {
 public:
  Replay(const AllocationTrace& trace, Bytes capacity, const ReservedOptions& options)
      : trace_(trace),
        allocator_({.capacity = capacity, .expandable_segments = options.expandable_segments}),
        blocks_(trace.tensors),
        terms_(trace.tensors, MemoryTerm::other) {}

  LifeMemory run();

 private:
  PartMemory open(Phase phase) const;
  void close(PartMemory& part) const;
  PartMemory whole(const TracePart& part);
  void play(std::span<const AllocationEvent> events, PartMemory& part);
  void play_marked(const TracePart& part, std::vector<PartMemory>& phases);
  void play(const AllocationEvent& event, PartMemory& part);

  const AllocationTrace& trace_;
  memory::CachingAllocator allocator_;
  std::vector<memory::CachingAllocator::Block> blocks_;
  std::vector<MemoryTerm> terms_;  // by tensor
  BytesByTerm live_{};
  std::vector<LivePoint>* points_ = nullptr;  // where live bytes are noted
  std::uint32_t event_ = 0;
};

PartMemory Replay::open(Phase phase) const {
  return {.phase = phase,
          .began_with = allocator_.allocated(),
          .peak_allocated = allocator_.allocated(),
          .peak_reserved = allocator_.reserved(),
          .allocated = {},
          .reserved = {},
          .at_peak = live_};
}

void Replay::close(PartMemory& part) const {
  part.allocated = allocator_.allocated();
  part.reserved = allocator_.reserved();
}

void Replay::play(const AllocationEvent& event, PartMemory& part) {
  memory::CachingAllocator::Block& block = blocks_[event.tensor];
  switch (event.kind) {
    case AllocationEvent::Kind::allocate:
      block = allocator_.allocate(event.bytes, StreamId{0});
      terms_[event.tensor] = event.term;
      live_[static_cast<std::size_t>(event.term)] += allocator_.bytes(block);
      part.peak_reserved = std::max(part.peak_reserved, allocator_.reserved());
      if (allocator_.allocated() > part.peak_allocated) {
        part.peak_allocated = allocator_.allocated();
        part.at_peak = live_;
      }
      break;
    case AllocationEvent::Kind::release:
    case AllocationEvent::Kind::leave:
      live_[static_cast<std::size_t>(terms_[event.tensor])] -= allocator_.bytes(block);
      if (event.kind == AllocationEvent::Kind::release)
        allocator_.free(block);
      else
        allocator_.free(block, std::span(&event.tensor, 1));
      break;
    case AllocationEvent::Kind::end:
      allocator_.end(event.tensor);
      break;
  }
  if (points_ != nullptr) points_->push_back({event_, allocator_.allocated()});
  ++event_;
}

void Replay::play(std::span<const AllocationEvent> events, PartMemory& part) {
  for (const AllocationEvent& event : events) play(event, part);
}

PartMemory Replay::whole(const TracePart& part) {
  PartMemory memory = open(part.phase);
  play(part.events, memory);
  close(memory);
  return memory;
}

/// Stretches of one phase count together.
void Replay::play_marked(const TracePart& part, std::vector<PartMemory>& phases) {
  event_ = 0;
  for (std::size_t i = 0; i < part.marks.size(); ++i) {
    const std::size_t begin = part.marks[i].event;
    const std::size_t end = i + 1 < part.marks.size() ? part.marks[i + 1].event : part.events.size();
    PartMemory stretch = open(part.marks[i].phase);
    play(std::span(part.events).subspan(begin, end - begin), stretch);
    close(stretch);
    const auto same = std::find_if(phases.begin(), phases.end(),
                                   [&](const PartMemory& other) { return other.phase == stretch.phase; });
    if (same == phases.end()) {
      phases.push_back(stretch);
      continue;
    }
    if (stretch.peak_allocated > same->peak_allocated) {
      same->peak_allocated = stretch.peak_allocated;
      same->at_peak = stretch.at_peak;
    }
    same->peak_reserved = std::max(same->peak_reserved, stretch.peak_reserved);
    same->allocated = stretch.allocated;
    same->reserved = stretch.reserved;
  }
}

LifeMemory Replay::run() {
  LifeMemory life;
  bool settled = false;
  for (const TracePart& part : trace_.parts) {
    if (part.phase != Phase::step) {
      life.parts.push_back(whole(part));
      continue;
    }
    if (settled) {
      whole(part);
      continue;
    }
    settled = true;
    EBB_ASSERT(!part.marks.empty() && part.marks.front().event == 0);
    std::vector<PartMemory> phases;
    for (int repeat = 1; repeat < kMostSteps; ++repeat) {
      const Bytes before = allocator_.reserved();
      phases.clear();
      life.steady.clear();
      points_ = &life.steady;
      play_marked(part, phases);
      points_ = nullptr;
      if (repeat > 1 && allocator_.reserved() == before) break;
    }
    life.parts.insert(life.parts.end(), phases.begin(), phases.end());
  }
  life.retries = allocator_.retries();
  return life;
}

}  // namespace

LifeMemory replay_life(const AllocationTrace& trace, Bytes capacity, const ReservedOptions& options) {
  try {
    return Replay(trace, capacity, options).run();
  } catch (const InputError&) {
    LifeMemory life = Replay(trace, kUnlimited, options).run();
    life.within_capacity = false;
    return life;
  }
}

}  // namespace ebb
