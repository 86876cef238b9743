// What `ebb-replay train` prints: numbers by step, peaks by part, checkpoints and their rates.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replay/life.hpp"
#include "replay/storage_reference.hpp"
#include "replay/train_script.hpp"

namespace ebb::replay {

struct TrainResult {
  TrainScript script;
  std::vector<std::int64_t> ranks;  // of run.ranks
  LifeRun run;
  bool on_gpu = false;
  std::optional<StorageReference> storage;  // plain large writes beside the last save
};

/// The k-th save or load of all ranks together: bytes added up, times of the slowest.
struct CheckpointTotal {
  bool saved = true;
  std::string directory;
  Bytes bytes{0};
  Seconds seconds{0};          // from its beginning until all is on the disk (or read, and checked)
  Seconds storage_seconds{0};  // of them: files alone
  BytesPerSecond rate() const { return {seconds.value > 0 ? static_cast<double>(bytes.value) / seconds.value : 0}; }
};
std::vector<CheckpointTotal> checkpoint_totals(std::span<const LifeNumbers> ranks);

std::string to_text(const TrainResult& result);
std::string to_json(const TrainResult& result);

}  // namespace ebb::replay
