// Lower bounds on what a candidate costs one rank, in closed form: cheap enough for thousands of candidates, so that
// search simulates only those that could still win.
//
// Time. Every policy shares the frame of the step (forward, backward, gradient reduction, norm, clip), which `resident`
// has been simulated for. On top of it, with K chunks, T tensors, n elements, S state bytes an element and each rate as
// it is when nothing else of this rank uses the link:
//   chunked    is serial: K * (fixed costs) + 6 T * latency + n S / h2d + n S / d2h + Adam + cast. Nothing overlaps, so
//              the bound is the time itself, up to launches that queue behind each other.
//   windowed, pipelined: the longest of several chains of waits (longest_chain in bounds.cpp).
//   cpu-adam   the frame alone.
// Ranks of one host share its limits. Where all do the same, each has its share of them throughout. Where they differ,
// a rank may have a link to itself for a while, so that its chains of waits go at the rates of a rank alone; but all
// bytes of the host together need at least the host's rate, so no fewer bytes than the least rank's pass at a rank's
// share. Memory. Sums without the allocator's rounding, through reserved_bound(), which is monotone.
#pragma once

#include <cstddef>
#include <vector>

#include "models/policy.hpp"
#include "models/timeline.hpp"
#include "planner/lower.hpp"
#include "planner/reserve_margin.hpp"
#include "sim/simulate.hpp"

namespace ebb {

struct Bound {
  Seconds step{0};
  Bytes reserved{0};
};

/// What else the rank's host carries.
struct HostLoad {
  std::int64_t ranks = 1;
  bool alike = true;     // all do the same as this one
  Numel least_owned{0};  // by any of them; 0 where their steps begin at different times
  Seconds computed{0};   // when backward compute has ended in the rank's resident step
};

class RankBounds {
 public:
  /// `resident`: the summary of the rank's simulated resident step. `rank` outlives the bounds.
  RankBounds(const RankModel& rank, const StepSummary& resident, const HostLoad& host);

  /// O(shards).
  Bound operator()(const Candidate& candidate) const;
  /// Not above the bound of any candidate with the same policy and fraction, whatever its chunk size and slots: the
  /// time without what chunks add, the memory without chunks.
  Bound of_family(const Candidate& candidate) const;

 private:
  /// Times of one direction's chunks in order, and what they move.
  struct Transfers;
  /// What `windowed` moves at a fraction. Kept for the next candidate, which mostly has the same fraction.
  struct Split {
    double fraction = 0;  // none yet
    std::vector<Shard> moving;
    Numel moved{0};
  };

  Bound bound(const Candidate& candidate, bool whole_family) const;
  const Split& split_at(double fraction) const;
  Seconds chunked_step(std::size_t chunks) const;
  Seconds windowed_step(const Candidate& candidate, bool whole_family, DeviceUse& use) const;
  Seconds pipelined_step(const Candidate& candidate) const;
  double longest_chain(const Transfers& transfers, std::size_t slots) const;
  double adam_seconds(Numel numel, bool writes_params) const;
  double shared_seconds(double bytes) const;

  const RankModel* rank_;
  double frame_ = 0;       // seconds of the resident step outside its optimizer phase
  double computed_ = 0;    // ... until backward compute has ended
  double after_step_ = 0;  // ... after the optimizer phase
  double kernels_ = 0;     // Adam over all elements and the cast to parameters
  Bytes state_{0};         // all of the rank's optimizer state
  double h2d_ = 0;         // bytes per second alone
  double d2h_ = 0;
  double most_ = 0;        // the highest sum of both directions
  double shared_h2d_ = 0;  // the same as a share of the host's limits
  double shared_d2h_ = 0;
  double shared_most_ = 0;
  double least_part_ = 1;  // of the rank's bytes: what the least rank of its host moves
  mutable Split split_;
};

}  // namespace ebb
