// `ebb-replay checkpoint PATH`: what is in a checkpoint, and whether it is whole.
#pragma once

#include <string>

namespace ebb::replay {

struct CheckpointOptions {
  std::string path;    // a checkpoint, or a directory of them
  bool hashes = true;  // every byte; otherwise sizes and headers
  bool json = false;
};

/// Prints what is in it. 0: whole. InputError with the file and the reason otherwise.
int run_checkpoint(const CheckpointOptions& options);

}  // namespace ebb::replay
