// Order: which op of a Plan has ended before which other starts, whatever the durations.
//
// Why: the builder leaves out dependencies that follow from others, and verify() must know what is ordered at all.
// How: a vector clock per op. A plan's streams are chains, so what an op comes after is, per stream, a prefix of that
// stream; one number a stream describes it. Building costs O((ops + deps) * streams), a question O(1).
// Source of the idea: L. Lamport, "Time, clocks, and the ordering of events" (1978), in the vector form of
// Mattern and Fidge.
// Not here: time. See sim::simulate.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/plan.hpp"

namespace ebb {

class Order {
 public:
  /// No ops yet. Precondition: streams > 0.
  explicit Order(std::size_t streams);
  /// All ops of `plan`. A dependency that is not on an earlier op is ignored (verify() reports it).
  explicit Order(const Plan& plan);

  void reserve(std::size_t ops) { clocks_.reserve(ops * streams_); }

  /// The next op: it follows the op before it on `stream` and everything in `deps`. Precondition: deps are earlier ops.
  OpId append(StreamId stream, std::span<const OpId> deps);

  /// `a` has ended before `b` starts. False when a == b. Precondition: both were appended.
  bool before(OpId a, OpId b) const {
    const std::uint32_t stream = stream_of_[a.index];
    return a != b && clock(b)[stream] >= clock(a)[stream];
  }

  /// The last op appended on `stream`; none() when there is none.
  OpId last_on(StreamId stream) const { return last_[stream.index]; }

 private:
  /// clock(op)[s]: how many ops of stream s have ended when `op` has ended.
  const std::uint32_t* clock(OpId op) const { return clocks_.data() + std::size_t{op.index} * streams_; }

  std::size_t streams_;
  std::vector<std::uint32_t> clocks_;     // ops x streams
  std::vector<std::uint32_t> stream_of_;  // by op
  std::vector<OpId> last_;                // by stream
};

}  // namespace ebb
