#include "sim/rate_memory.hpp"

#include <algorithm>

namespace ebb::sim {

void RateMemory::reset(Fabric& fabric, std::size_t component) {
  fabric_ = &fabric;
  component_ = component;
  lanes_ = fabric.lanes_of(component).size();
  const std::size_t bits = std::min(lanes_ + 2, kMostBits);
  const std::size_t entries = std::size_t{1} << bits;
  shift_ = 64 - static_cast<unsigned>(bits);
  words_.assign((lanes_ + kFlowsPerWord - 1) / kFlowsPerWord, ~std::uint64_t{0});  // kNoFlow everywhere
  known_.assign(entries, 0);
  entry_words_.resize(entries * words_.size());
  entry_rates_.resize(entries * lanes_);
}

void RateMemory::solve(std::size_t entry) {
  flows_.resize(lanes_);
  for (std::size_t i = 0; i < lanes_; ++i)
    flows_[i] = static_cast<FlowId>(words_[i / kFlowsPerWord] >> (16 * (i % kFlowsPerWord)));
  fabric_->solve(component_, flows_, std::span(entry_rates_).subspan(entry * lanes_, lanes_));
  std::copy(words_.begin(), words_.end(), entry_words_.begin() + static_cast<std::ptrdiff_t>(entry * words_.size()));
  known_[entry] = 1;
}

}  // namespace ebb::sim
