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
};

struct TrainScript {
  LifeScript script;
  std::string from;         // the checkpoint that it begins with; empty: init
  bool parameters = false;  // only those of it
  int first = 0;            // training steps that lie behind it
  std::vector<int> saves;   // after these training steps
};

/// InputError where there is nothing left to train, or no whole checkpoint where one is named.
TrainScript train_script(const TrainWishes& wishes);

}  // namespace ebb::replay
