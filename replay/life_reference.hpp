// ReferenceLife: a life on the CPU event by event, so that a test can look between events and go on after one that
// failed. reference_life() runs a whole script.
//
// An event that throws before its part has begun (a checkpoint that is refused, a directory that cannot be written)
// leaves everything as it was.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replay/life.hpp"
#include "replay/postponed_save.hpp"
#include "replay/reference_run.hpp"

namespace ebb::replay {

class ReferenceLife {
 public:
  /// `ranks` outlive it.
  ReferenceLife(std::span<const LifeRank> ranks, const LifeScript& script, std::optional<StreamKind> held_back,
                std::size_t most_on);

  /// InputError when the event cannot come here, when a plan or the checkpoint is not what it needs; IoError of files.
  void on(const LifeEvent& event);
  /// Numbers of all ranks up to here.
  std::vector<LifeNumbers> finish();

  ReferenceRun& run() { return run_; }
  const TrainingPlace& place() const { return place_; }

 private:
  /// What of the state there is.
  enum class Stage { nothing, masters, all };

  void step();
  void load(const LifeEvent& event);
  void save(const LifeEvent& event);
  void write(const LifeEvent& save);
  LifePart part(LifePart part, std::optional<LifePart> skip = std::nullopt);
  void set_place(const TrainingPlace& place);

  std::span<const LifeRank> ranks_;
  TrainingOptions options_;
  std::size_t keep_;
  std::function<void()> beside_save_;
  ReferenceRun run_;
  Stage stage_ = Stage::nothing;
  TrainingPlace place_;
  PostponedSave postponed_;
  std::vector<LifeNumbers> numbers_;  // by rank
};

}  // namespace ebb::replay
