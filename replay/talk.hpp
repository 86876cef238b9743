// What a command says beside its result, all of it on standard error: remarks and progress (not with --quiet), details
// (with --verbose). One state for the process, set once by main(). Not here: notes that belong to a result.
#pragma once

#include <string>

namespace ebb::replay {

/// What every command takes: how much it says beside its result.
struct Talk {
  bool quiet = false;    // no progress, no remarks
  bool verbose = false;  // which files are read, how long each part takes
};

void set_talk(const Talk& wanted);
const Talk& talk();

/// "ebb-replay: TEXT".
void remark(const std::string& text);
/// The same, only with --verbose.
void detail(const std::string& text);

/// Work from here to the end of the scope: with --verbose its time is printed then.
class Activity {
 public:
  /// "reading plan.json".
  explicit Activity(std::string what);
  ~Activity();
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

 private:
  std::string what_;
  double begin_ = 0;  // seconds of a steady clock
};

}  // namespace ebb::replay
