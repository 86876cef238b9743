// CheckpointStaging: state on the device, window by window between there and a checkpoint, through two pinned buffers
// in turn: while the host writes one (or reads into it), a copy fills (or empties) the other. Windows cut shards
// freely. Internal to lowering (lower_save.cpp, lower_load.cpp).
#pragma once

#include <array>
#include <deque>
#include <vector>

#include "planner/lowerings.hpp"

namespace ebb {

/// Elements of a window: large enough for the link and for storage, and two of them do not matter to a host.
inline constexpr std::int64_t kCheckpointWindow = std::int64_t{16} << 20;

class CheckpointStaging {
 public:
  /// Two buffers, made when they are first used, for windows of `most_bytes` an element.
  CheckpointStaging(PlanBuilder& plan, const RankModel& rank, Phase phase, std::int64_t most_bytes);

  /// `states` of `range` in `buffer` into the checkpoint. `size`: bytes of them an element.
  void store(std::uint8_t states, ElementRange range, std::int64_t size, BufferId buffer);
  /// Quantised parameters in the model's type, through the device buffer `dequantized` of one window.
  void store_dequantized(ElementRange range, std::int64_t size, BufferId dequantized);
  /// What has been copied and not been written yet. The last thing to call in a save.
  void finish();
  /// From the checkpoint into `buffer`, once `room` has ended; the last copy.
  OpId fetch(std::uint8_t states, ElementRange range, std::int64_t size, BufferId buffer, OpId room);
  /// Masters that the host makes of the initial values, the same way.
  OpId make_masters(ElementRange range, BufferId buffer, OpId room);

 private:
  struct Pending {
    OpId copy;
    Op store;
  };
  struct Moved {
    std::uint8_t states = 0;
    std::int64_t size = 0;
    BufferId buffer;
  };
  std::uint32_t pieces(ElementRange range) const;
  BufferId next_stage();
  void store_window(const Moved& moved, ElementRange window, OpId ready);
  void store_oldest();
  OpId bring(Work work, const Moved& moved, ElementRange range, OpId room);

  PlanBuilder& plan_;
  const RankModel& rank_;
  Phase phase_;
  std::vector<std::int64_t> begins_;  // of each shard in the owned elements
  Bytes bytes_;                       // of a buffer
  std::array<BufferId, 2> stages_;
  std::array<OpId, 2> emptied_;
  std::size_t windows_ = 0;
  std::deque<Pending> pending_;
};

}  // namespace ebb
