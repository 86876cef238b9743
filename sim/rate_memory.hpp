// RateMemory: the rates of one component of a Fabric, remembered by what flows.
//
// Why: rates depend on nothing but the set of flows, and a plan of a thousand chunks meets the same few dozen sets
// again and again. A direct-mapped table, hashed by an exclusive or of one random number a flow, so that a change of
// one flow changes the hash in one step; an entry also keeps the flows themselves and is solved anew where they differ,
// so that a collision costs time and never a wrong rate.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/fabric.hpp"

namespace ebb::sim {

class RateMemory {
 public:
  /// Forgets everything but its storage. `fabric` outlives the next uses.
  void reset(Fabric& fabric, std::size_t component);

  /// The lane at `index` of fabric.lanes_of(component) carries `flow` from now on (kNoFlow: nothing).
  void set(std::size_t index, FlowId flow) {
    hash_ ^= number_of(index, flows_[index]) ^ number_of(index, flow);
    flows_[index] = flow;
  }
  FlowId flow(std::size_t index) const { return flows_[index]; }

  /// Bytes per tick on each lane, valid until the next call.
  std::span<const double> rates();

 private:
  static constexpr std::size_t kMostEntries = 1024;

  /// SplitMix64 of lane and flow (Steele, Lea and Flood, OOPSLA 2014).
  static std::uint64_t number_of(std::size_t index, FlowId flow) {
    std::uint64_t z = (static_cast<std::uint64_t>(index) << 16 | flow) * 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

  Fabric* fabric_ = nullptr;
  std::size_t component_ = 0;
  std::size_t lanes_ = 0;
  std::size_t entries_ = 0;  // a power of two
  std::uint64_t hash_ = 0;
  std::vector<FlowId> flows_;        // by lane: now
  std::vector<std::uint8_t> known_;  // by entry
  std::vector<FlowId> entry_flows_;  // entry x lane
  std::vector<double> entry_rates_;  // entry x lane
};

}  // namespace ebb::sim
