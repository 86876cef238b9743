// RateMemory: the rates of one component of a Fabric, remembered by what flows.
//
// Why: rates depend on nothing but the set of flows, and a plan of a thousand chunks meets the same few dozen sets
// again and again. A direct-mapped table: an entry keeps the flows that it was solved for and is solved anew where they
// differ, so that a collision costs time and never gives a wrong rate. Four flows are kept and compared as one 64-bit
// word.
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
    const unsigned shift = 16 * static_cast<unsigned>(index % kFlowsPerWord);
    std::uint64_t& word = words_[index / kFlowsPerWord];
    word = (word & ~(std::uint64_t{kNoFlow} << shift)) | std::uint64_t{flow} << shift;
  }

  /// Bytes per tick on each lane, valid until the next call.
  std::span<const double> rates() {
    std::uint64_t hash = 0;  // multiplicative, by the golden ratio (Knuth, volume 3, section 6.4)
    for (const std::uint64_t word : words_) hash = (hash ^ word) * 0x9e3779b97f4a7c15U;
    const std::size_t entry = hash >> shift_;
    const std::uint64_t* words = &entry_words_[entry * words_.size()];
    bool same = known_[entry] != 0;
    for (std::size_t i = 0; i < words_.size(); ++i) same &= words[i] == words_[i];
    if (!same) solve(entry);
    return {&entry_rates_[entry * lanes_], lanes_};
  }

 private:
  static constexpr std::size_t kMostBits = 12;  // 4,096 entries
  static constexpr std::size_t kFlowsPerWord = 4;

  void solve(std::size_t entry);

  Fabric* fabric_ = nullptr;
  std::size_t component_ = 0;
  std::size_t lanes_ = 0;
  unsigned shift_ = 0;                      // of a hash, to the number of an entry
  std::vector<std::uint64_t> words_;        // what flows now, four lanes a word; kNoFlow beyond the last lane
  std::vector<std::uint8_t> known_;         // by entry
  std::vector<std::uint64_t> entry_words_;  // entry x word
  std::vector<double> entry_rates_;         // entry x lane
  std::vector<FlowId> flows_;               // scratch
};

}  // namespace ebb::sim
