// The values that one question of `ebb fit` is about, in ascending order.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/fit.hpp"

namespace ebb {

class FitAxis {
 public:
  /// Values that obey the rules of the job. sequence: multiples of 128 x context parallel sizes, and of what the rules
  /// ask for beyond; layers: what the pipeline splits evenly; micro-batch, gpus: what divides the batch.
  FitAxis(const Job& job, FitGoal goal);

  std::int64_t size() const { return count_; }
  std::int64_t at(std::int64_t index) const { return listed_.empty() ? first_ + index * step_ : listed_[index]; }
  /// The last index whose value is not above `value`; 0 when all are.
  std::int64_t index_of(std::int64_t value) const;
  /// A value past the last one or, `below`, before the first one, which a rule forbids: twice or half of it where
  /// values are listed, otherwise the next in steps. 0: there is none.
  std::int64_t beyond(bool below) const;
  std::int64_t step() const { return listed_.empty() ? step_ : 0; }

 private:
  std::int64_t first_ = 0, step_ = 1, count_ = 0;
  std::vector<std::int64_t> listed_;  // instead of first, step and count
};

/// Whether the rules allow the job.
bool is_valid(const Job& job);

}  // namespace ebb
