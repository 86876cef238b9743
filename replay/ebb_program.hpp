// The `ebb` executable, run from here: replay does not link the planner, and asks it for plans as a user would.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "replay/checkpoint/unfinished.hpp"

namespace ebb::replay {

/// A directory of this process's own, removed with everything in it.
class ScratchDirectory {
 public:
  /// In `parent`, which is made if need be; unset: where temporary files belong. IoError.
  explicit ScratchDirectory(const std::optional<std::string>& parent = std::nullopt);
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::optional<checkpoint::Unfinished> unfinished_;  // an interrupt takes it away, too
};

/// `ebb ARGUMENTS`, from beside this executable or else from PATH; its stdout is dropped, its stderr is ours. Returns
/// its exit code. IoError when it cannot be started or is killed.
int run_ebb(std::span<const std::string> arguments);

}  // namespace ebb::replay
