// Overlap pieces: the gradient buckets of one rank, grouped for collectives that run beside forward and backward.
//
// Megatron-LM reduces a bucket as soon as backward has filled it, and gathers the next bucket while forward runs on
// the one before. A plan of some hundred buckets would be mostly collectives, so buckets are grouped: the last one
// (first layers: its reduction is exposed after backward, its gather before forward) stays alone, the others form at
// most three even groups. Not here: the collectives' time.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "models/job.hpp"
#include "models/plan.hpp"
#include "planner/layout.hpp"

namespace ebb {

inline constexpr std::size_t kMostPieces = 4;

/// Consecutive buckets in gradient order (output side first), dense [0] and expert [1] ones side by side.
struct OverlapPiece {
  std::array<Bytes, 2> reduce{};  // gradient bytes
  std::array<Bytes, 2> gather{};  // parameter bytes
  ElementRange range;             // padded elements, dense and expert together, in gradient order
};

/// At least one piece; exactly one when nothing overlaps (no bucketing) or nothing is sharded.
std::vector<OverlapPiece> overlap_pieces(const Job& job, const StageLayout& stage);

/// The stage's buckets in the order that pieces count padded elements in.
struct PaddedOrder {
  std::vector<PlanBucket> buckets;
  std::vector<std::vector<std::int64_t>> begin;  // by buffer and bucket of it: its first padded element

  /// The padded element that lies at `start` of the stage's buffer, in this bucket of it.
  Numel place(const StageLayout& stage, std::size_t buffer, std::size_t bucket, Numel start) const {
    return Numel{begin[buffer][bucket]} + start - stage.buffers[buffer].buckets[bucket].start;
  }
};
PaddedOrder padded_order(const Job& job, const StageLayout& stage);

/// Who takes part in a collective.
struct Group {
  std::uint32_t members = 1;
  std::uint32_t stride = 1;   // global ranks between neighbours
  std::uint32_t domains = 1;  // NVLink domains they are spread over
};

/// `members` ranks that are `stride` global ranks apart and start at a multiple of members * stride (the rank order
/// "tp-cp-ep-dp-pp" places every group so): a domain of D GPUs holds max(1, D / stride) of them.
Group strided_group(std::int64_t members, std::int64_t stride, std::int64_t nvlink_domain);

/// The groups that share gradients: dense parameters are TP ranks apart, experts ETP * EP (megatron rank orders
/// tp-cp-ep-dp-pp and tp-ep-dp-pp; times PP where pipeline ranks are inside data-parallel ones, which for dense groups
/// with context parallelism is their widest form); instances of the optimizer are one sharding group apart.
Group sharding_group(const Job& job, bool expert);
Group instance_group(const Job& job, bool expert);

}  // namespace ebb
