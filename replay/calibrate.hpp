// `ebb-replay calibrate`: measures this machine (or reads what was measured), fits a Cluster, writes it as YAML and
// shows each figure with its residual.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ebb::replay {

struct CalibrateOptions {
  std::filesystem::path output = {};               // the cluster's YAML; required
  std::optional<std::string> base = {};            // a cluster's name or file; else the library's with this GPU
  double seconds = 60;                             // about as long as measuring takes; more: more repeats
  std::vector<int> devices = {};                   // empty: all
  bool json = false;                               // the table as JSON
  std::optional<std::filesystem::path> raw = {};   // also write the measurements
  std::optional<std::filesystem::path> from = {};  // fit these measurements instead of measuring
  std::string date = {};  // empty: of SOURCE_DATE_EPOCH, else today (UTC). The one thing that differs between two fits
  std::string command = {};  // how it was called, for the comment on top of the file
};

/// Progress on stderr, the table on stdout. Returns the exit code, 0; InputError, IoError, CudaError, NcclError.
int run_calibrate(const CalibrateOptions& options);

/// The library's cluster that measurements of `gpus` GPUs of this name go on top of: the same GPU, one or several a
/// host as here, the nearest number; without the same GPU h200-1gpu or hgx-h200.
std::string base_cluster(const std::string& gpu, std::int64_t gpus);

}  // namespace ebb::replay
