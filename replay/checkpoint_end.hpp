// CheckpointEnd: one rank's end of the checkpoint that a save writes or a load reads: from the pieces that a plan names
// (program.hpp: Store, Fetch), which are elements of shards, to pieces of parameters in files (checkpoint.hpp).
//
// A file of a rank holds, state by state, each shard whole, whatever windows it comes in: so it does not depend on the
// policy. Not here: CUDA; who waits for whom (rank_life.cpp).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "replay/checkpoint/checkpoint.hpp"
#include "replay/program.hpp"

namespace ebb::replay {

/// What a rank's file will have: all that the plan stores, by state and shard.
struct CheckpointTable {
  std::vector<checkpoint::Parameter> parameters;  // Plan::parameters
  std::vector<checkpoint::Piece> pieces;
  std::map<std::pair<StateBits, std::uint32_t>, std::size_t> piece_of;  // of a state and shard
};
/// Precondition: shards of the plan name their parameters (describe_parameters in plan files).
CheckpointTable checkpoint_table(const Program& save);
std::vector<checkpoint::Parameter> checkpoint_parameters(const Plan& plan);

/// The parts of a rank's host store.
struct HostParts {
  std::byte* pinned = nullptr;
  std::byte* pageable = nullptr;
};

class CheckpointEnd {
 public:
  /// Makes the rank's file. As RankWriter.
  void begin_save(const Program& save, const std::string& directory, const checkpoint::Description& what);
  void store(const Store& store, const HostParts& host);
  /// All is on the disk.
  checkpoint::Written end_save();

  /// `reader` outlives the load. InputError unless the checkpoint has what `load` wants of it.
  void begin_load(const Program& load, const checkpoint::Reader& reader);
  void fetch(const Fetch& fetch, const HostParts& host);
  void end_load() { reader_ = nullptr; }

  /// Since the last begin: read from files, and in the calls that did it.
  Bytes bytes_read() const { return bytes_; }
  double seconds_read() const { return seconds_; }

 private:
  const Program* program_ = nullptr;
  CheckpointTable table_;
  std::optional<checkpoint::RankWriter> writer_;
  const checkpoint::Reader* reader_ = nullptr;
  Bytes bytes_{0};
  double seconds_ = 0;
};

}  // namespace ebb::replay
