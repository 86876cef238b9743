// CheckpointEnd: one rank's end of the checkpoint that a save writes or a load reads, with its bytes and seconds, as
// the ops Store and Fetch of a plan ask for it. Not here: which pieces they are (life_checkpoint.hpp); who waits for
// whom (rank_life.cpp); CUDA.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "replay/checkpoint/checkpoint.hpp"
#include "replay/life_checkpoint.hpp"
#include "replay/program.hpp"

namespace ebb::replay {

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
  void finish_save();
  /// When the checkpoint has its name: gives the lock on its files back.
  void end_save() { writer_.reset(); }

  /// `reader` outlives the load. InputError unless the checkpoint has what `load` wants of it.
  void begin_load(const Program& load, const checkpoint::Reader& reader);
  void fetch(const Fetch& fetch, const HostParts& host);
  void end_load() { reader_ = nullptr; }

  /// Since the last begin: bytes of the rank's file or of what was read, and seconds in the calls that did it.
  Bytes bytes() const { return bytes_; }
  double storage_seconds() const { return seconds_; }

 private:
  template <class Do>
  void timed(Do&& act);

  const Program* program_ = nullptr;
  std::optional<SavedPieces> pieces_;
  std::optional<checkpoint::RankWriter> writer_;
  const checkpoint::Reader* reader_ = nullptr;
  Bytes bytes_{0};
  double seconds_ = 0;
};

}  // namespace ebb::replay
