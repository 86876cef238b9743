// A checkpoint in memory, for lives whose parts are looked at one by one: what a part does with it is the same.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "replay/life_checkpoint.hpp"
#include "replay/reference_rank.hpp"
#include "tests/catch.hpp"

namespace ebb::test {

/// Bytes by parameter, state and element, as a save wrote them.
class MemoryCheckpoint {
 public:
  replay::CheckpointPieces of(const Plan& plan) {
    return {.store =
                [this, &plan](const replay::CheckpointPiece& piece, const std::byte* data) {
                  std::vector<std::byte>& bytes = tensor(plan, piece);
                  const auto at = first(plan, piece);
                  if (bytes.size() < at + size(piece)) bytes.resize(at + size(piece));
                  std::copy(data, data + size(piece), bytes.begin() + static_cast<std::ptrdiff_t>(at));
                },
            .fetch =
                [this, &plan](const replay::CheckpointPiece& piece, std::byte* data) {
                  const std::vector<std::byte>& bytes = tensor(plan, piece);
                  const auto at = static_cast<std::ptrdiff_t>(first(plan, piece));
                  REQUIRE(bytes.size() >= static_cast<std::size_t>(at) + size(piece));
                  std::copy(bytes.begin() + at, bytes.begin() + at + static_cast<std::ptrdiff_t>(size(piece)), data);
                }};
  }
  bool operator==(const MemoryCheckpoint&) const = default;

 private:
  static std::size_t size(const replay::CheckpointPiece& piece) {
    return static_cast<std::size_t>(bytes_of(piece.numel, size_of(piece.type)).value);
  }
  static std::size_t first(const Plan& plan, const replay::CheckpointPiece& piece) {
    const Numel offset = plan.shards[piece.shard].offset + piece.first;
    return static_cast<std::size_t>(bytes_of(offset, size_of(piece.type)).value);
  }
  std::vector<std::byte>& tensor(const Plan& plan, const replay::CheckpointPiece& piece) {
    return tensors_[{plan.shards[piece.shard].parameter, piece.state}];
  }
  std::map<std::pair<std::uint32_t, StateBits>, std::vector<std::byte>> tensors_;
};

}  // namespace ebb::test
