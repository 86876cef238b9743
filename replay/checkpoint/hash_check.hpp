// Reads every byte of a checkpoint's files with several threads and compares with the manifest's hashes.
#pragma once

#include <string>

#include "replay/checkpoint/manifest.hpp"

namespace ebb::replay::checkpoint {

/// InputError naming the file and the bytes that are not those that were saved, or the state whose content is not what
/// the manifest says; IoError.
void check_hashes(const std::string& directory, const Manifest& manifest, int threads);

}  // namespace ebb::replay::checkpoint
