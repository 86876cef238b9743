// PostponedSave: a save that was due while every step so far had been skipped. There are no moments then, and masters
// and parameters are what init made: nothing that a resume would not make anew. So the save waits for the first step
// that is not skipped; where none comes, there is no checkpoint, and training that begins anew gives the same numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "replay/life.hpp"

namespace ebb::replay {

class PostponedSave {
 public:
  void put_off(const LifeEvent& save) { waiting_ = save; }
  /// After a step that was not skipped: the save, once.
  std::optional<LifeEvent> due() { return std::exchange(waiting_, std::nullopt); }
  void made(const LifeEvent& save, std::int64_t steps) { made_ = {save.directory, steps}; }
  /// Whether the save of this moment has been made already, because it had been due before.
  bool was_made(const LifeEvent& save, std::int64_t steps) const {
    return made_ && made_->first == save.directory && made_->second == steps;
  }

 private:
  std::optional<LifeEvent> waiting_;
  std::optional<std::pair<std::string, std::int64_t>> made_;
};

}  // namespace ebb::replay
