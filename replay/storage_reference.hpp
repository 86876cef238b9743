// What a disk takes in plain large writes: the mark that a save's rate is held against. Like
// `dd if=... of=FILE bs=16M oflag=direct conv=fsync`, one writer a rank at the same time, as many bytes as the save,
// right before it and right after it: what a disk takes changes with what it has taken. Without O_DIRECT where that is
// faster.
#pragma once

#include <string>
#include <vector>

#include "models/units.hpp"

namespace ebb::replay {

struct StorageRate {
  Bytes bytes{0};
  Seconds seconds{0};  // from the first write to the end of fsync
  bool direct = false;
  BytesPerSecond rate() const { return {seconds.value > 0 ? static_cast<double>(bytes.value) / seconds.value : 0}; }
};

class StorageReference {
 public:
  /// `bytes` in `writers` files in `directory`.
  StorageReference(std::string directory, Bytes bytes, int writers);

  /// Writes them; nothing stays. The first time some of them both ways before, to see which is faster. IoError.
  void measure();
  const std::vector<StorageRate>& rates() const { return rates_; }
  /// Of all rates measured.
  BytesPerSecond mean() const;

 private:
  std::string directory_;
  Bytes bytes_;
  int writers_;
  bool direct_ = true;
  std::vector<StorageRate> rates_;
};

}  // namespace ebb::replay
