// What this process has begun to write and not finished, so that an interrupt takes it away (replay/interrupt.hpp).
//
// A directory may be written by several parts, of this process or of others: where all are of this process it goes as a
// whole, else only what this process's own unfinished parts have in it. From the moment that a directory gets a name
// that stays, nothing of it is unfinished: forget_unfinished() hands out the lock that removal takes, too. Not here:
// signals.
#pragma once

#include <cstdint>
#include <limits>
#include <list>
#include <mutex>
#include <string>
#include <vector>

namespace ebb::replay::checkpoint {

/// One part of a directory, while it lives. Make it before the directory.
class Unfinished {
 public:
  /// Nothing of `directory` is this part's yet: it only goes while it is empty.
  explicit Unfinished(std::string directory);
  ~Unfinished();
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  /// It has `files` of a directory of `of` parts.
  void own(std::int64_t of, std::vector<std::string> files);
  /// Its files are complete: they only go together with the whole directory.
  void complete();

  struct Part {
    std::string directory;
    std::int64_t of = std::numeric_limits<std::int64_t>::max();
    std::vector<std::string> files;
    bool complete = false;
  };

 private:
  std::list<Part>::iterator part_;
};

/// While it is held nothing is removed: whoever makes a file or a directory holds it, so that removal never comes
/// between two names of one thing, nor a name after it.
using RemovalWaits = std::unique_lock<std::recursive_mutex>;
RemovalWaits hold_removal();

/// No part of `directory` is unfinished any more.
RemovalWaits forget_unfinished(const std::string& directory);

/// Removes all of it, as far as it can. For a process that is about to end: from then on, whoever makes or ends an
/// Unfinished waits for ever, so that nothing is begun again.
void remove_unfinished() noexcept;

}  // namespace ebb::replay::checkpoint
