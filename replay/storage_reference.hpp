// What a disk takes in plain large writes: the mark that a save's rate is held against. Like
// `dd if=... of=FILE bs=16M oflag=direct conv=fsync`, one writer a rank at the same time, and the same without
// O_DIRECT; the faster of the two counts.
#pragma once

#include <string>

#include "models/units.hpp"

namespace ebb::replay {

struct StorageRate {
  Bytes bytes{0};
  Seconds seconds{0};  // from the first write to the end of fsync
  bool direct = false;
  BytesPerSecond rate() const { return {seconds.value > 0 ? static_cast<double>(bytes.value) / seconds.value : 0}; }
};

/// Writes `bytes` (at most 8 GiB) into `writers` files in `directory`, which go again. IoError.
StorageRate measure_large_writes(const std::string& directory, Bytes bytes, int writers);

}  // namespace ebb::replay
