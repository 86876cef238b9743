// The script of a training run: init, perhaps a load, steps up to a given one, and saves between. Which checkpoint to
// begin with is found here, from what lies in the directories.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "replay/life.hpp"

namespace ebb::replay {

struct TrainWishes {
  TrainingOptions training;
  int steps = 0;                          // training steps when it ends
  std::optional<std::string> checkpoint;  // directory of saves
  int save_every = 0;                     // 0: only the last step
  std::size_t keep = 2;
  bool resume = false;  // from the newest checkpoint there, if there is one
  std::optional<std::string> load;
  std::optional<std::string> load_params;
  // Whether `training` has them from the user:
  bool seed_given = false;
  bool scaling_given = false;
  bool initial_scale_given = false;
};

struct TrainScript {
  LifeScript script;
  std::string from;         // the checkpoint that it begins with; empty: init
  bool parameters = false;  // only those of it
  int first = 0;            // training steps that lie behind it
  std::vector<int> saves;   // after these training steps
  bool done = false;        // resumed, and there is nothing left to train: no events
};

/// InputError where a checkpoint that is named has no steps left to train or is not whole, where options contradict
/// what its run began with, and where a later checkpoint lies where this run would save.
TrainScript train_script(const TrainWishes& wishes);

/// What became of saves that were due while every step had been skipped (postponed_save.hpp); "" where none was.
std::string put_off_remark(const TrainScript& train, const std::vector<StepNumbers>& steps);

}  // namespace ebb::replay
