// StateTrace: optimizer state in an AllocationTrace: what each policy allocates and frees, one tensor a shard and
// state, where a Plan has one buffer. Internal to allocation_trace.cpp.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "planner/checkpoint_tensors.hpp"
#include "planner/lower.hpp"
#include "planner/quantize_calls.hpp"
#include "planner/trace_builder.hpp"

namespace ebb {

struct TidalPieces;

class StateTrace {
 public:
  StateTrace(TraceBuilder& trace, const RankModel& rank, const Candidate& candidate);
  /// When the optimizer is built.
  void init();
  /// Before forward. `first`: nothing has been stepped yet.
  void begin_step(bool first);
  /// After backward, before gradients are normed and clipped.
  void finalize(bool first);
  void step(bool first);
  /// A checkpoint comes in before the first step (allocation_trace_life.cpp).
  void load(Start start);
  /// Instead of step(), where gradients are not finite.
  void skip();
  void save();
  /// Whether moments exist: after a step, or a load that brought them.
  bool has_moments() const { return has_moments_; }

 private:
  enum class Moves : std::uint8_t { in, out };
  /// Shards [begin, end).
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  /// `windowed`: what one chained optimizer moves.
  struct Manager {
    std::vector<Range> chunks;
    Range moves;
    Range stays;
    TraceTensor slots[2];
    Bytes slot_bytes[2];
  };

  Range all() const { return {0, rank_.shards.size()}; }
  Bytes bytes(std::size_t shard, std::int64_t bytes_per_element) const {
    return bytes_of(rank_.shards[shard].numel, bytes_per_element);
  }
  Bytes master_bytes(std::size_t shard) const { return bytes(shard, precision_.master_bytes()); }
  void masters(Range range, Moves moves);
  void moments(Range range, Moves moves);
  void state(Range range, Moves moves);
  void adam(Range range, bool creates);
  void scratch(Range range);
  void make_masters(Range range);
  void quantize(const QuantizeCall& call);
  void quantize_all();

  void step_chunks(bool first);
  void split_managers();
  void masters_leave(bool first);
  void prefetch(bool first);
  void step_windows(bool first);
  void fill(Manager& manager, std::size_t chunk);
  void step_on_host(bool first);
  void step_in_slots(std::int64_t count, Numel numel);
  const TidalPieces& tide();
  void keep();
  void tail(Moves moves);
  void step_tidal();

  void release_slots(Manager& manager);
  void resume();
  void resume_on_device(Range range);
  void resume_in_windows();
  void resume_on_host();
  void fill_masters();
  /// Tensors of `sizes` bytes an element, of every shard of `range`.
  std::vector<TraceTensor> copies(Range range, const TensorSizes& sizes);
  void let_go(std::vector<TraceTensor>& tensors);

  TraceBuilder& trace_;
  const RankModel& rank_;
  Candidate candidate_;
  Precision precision_;
  bool masters_at_init_;
  int scratch_tensors_;  // fp32 tensors that Adam needs beside each shard
  std::size_t on_host_ = 0;
  bool has_moments_ = false;
  bool away_ = false;  // full-reload's state, windowed's masters: on the host although no step has begun
  std::vector<Manager> managers_;
  std::shared_ptr<const TidalPieces> tide_;  // tidal, once it is asked for
  bool tail_here_ = false;
  bool kept_here_ = false;
  std::vector<TraceTensor> tail_;
  std::vector<TraceTensor> master_, exp_avg_, exp_avg_sq_;  // by shard
};

}  // namespace ebb
