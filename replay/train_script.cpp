#include "replay/train_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "models/errors.hpp"
#include "replay/checkpoint/checkpoint.hpp"

namespace ebb::replay {

namespace {

[[noreturn]] void contradicts(const char* option, const std::string& problem) {
  throw InputError({.file = option}, problem, "leave it out: a resume goes on as its run began");
}

/// The seed and the rule of the loss scale are the checkpoint's. Options that say the same are welcome: who starts a
/// job again does so with the same command line.
void take_origin(const checkpoint::Reader& reader, const TrainWishes& wishes, TrainingOptions& training) {
  const TrainingOrigin& origin = reader.description().origin;
  if (wishes.seed_given && wishes.training.seed != origin.seed)
    contradicts("--seed", fmt::format("{} is of a run that began with seed {}, not {}", reader.path(), origin.seed,
                                      wishes.training.seed));
  if (wishes.scaling_given && !origin.scaling.on)
    contradicts("--loss-scale", fmt::format("{} is of a run that does not scale the loss", reader.path()));
  if (wishes.initial_scale_given && wishes.training.scaling.initial != origin.scaling.initial)
    contradicts("--initial-loss-scale", fmt::format("{} is of a run that began with {}, not {}", reader.path(),
                                                    static_cast<double>(origin.scaling.initial),
                                                    static_cast<double>(wishes.training.scaling.initial)));
  training.seed = origin.seed;
  training.scaling = origin.scaling;
}

/// Its bytes are checked when it is loaded.
void begin_with(const std::string& path, const TrainWishes& wishes, TrainScript& train) {
  const checkpoint::Reader reader(path, false);
  const std::int64_t steps = reader.description().place.steps;
  train.from = reader.path();
  train.first = static_cast<int>(std::min<std::int64_t>(steps, std::numeric_limits<int>::max()));
  take_origin(reader, wishes, train.script.training);
}

/// Which checkpoint, and how many steps it has behind it.
void begin(const TrainWishes& wishes, TrainScript& train) {
  if (wishes.load_params) {
    train.from = *wishes.load_params;
    train.parameters = true;
    return;
  }
  if (wishes.load) return begin_with(*wishes.load, wishes, train);
  if (!wishes.resume) return;
  const std::vector<std::string> known = checkpoint::list(*wishes.checkpoint);
  if (!known.empty()) begin_with(known.back(), wishes, train);
}

}  // namespace

TrainScript train_script(const TrainWishes& wishes) {
  TrainScript train;
  LifeScript& script = train.script;
  script.training = wishes.training;
  script.keep = wishes.keep;
  begin(wishes, train);
  if (train.first >= wishes.steps) {
    train.done = wishes.resume;  // who starts a job again until it is through wants no error then
    if (train.done) return train;
    throw InputError(
        {.file = "--steps"},
        fmt::format("{} has {} steps behind it, and training ends at {}", train.from, train.first, wishes.steps),
        "raise --steps");
  }
  if (wishes.checkpoint) checkpoint::require_newest(*wishes.checkpoint, train.first);
  script.events.push_back({.kind = LifeEvent::Kind::init, .directory = {}});
  if (!train.from.empty())
    script.events.push_back(
        {.kind = train.parameters ? LifeEvent::Kind::load_params : LifeEvent::Kind::load, .directory = train.from});
  for (int at = train.first; at < wishes.steps;) {
    int next = wishes.steps;
    if (wishes.checkpoint && wishes.save_every > 0)
      next = std::min(next, (at / wishes.save_every + 1) * wishes.save_every);
    script.events.push_back({.kind = LifeEvent::Kind::steps, .steps = next - at, .directory = {}});
    at = next;
    if (!wishes.checkpoint) continue;
    script.events.push_back({.kind = LifeEvent::Kind::save, .directory = *wishes.checkpoint});
    train.saves.push_back(at);
  }
  return train;
}

std::string put_off_remark(const TrainScript& train, const std::vector<StepNumbers>& steps) {
  if (!train.from.empty() && !train.parameters) return "";
  const auto good = std::find_if(steps.begin(), steps.end(), [](const StepNumbers& step) { return !step.skipped; });
  const int taken = train.first + static_cast<int>(good - steps.begin());  // skipped ones, from the first on
  if (train.saves.empty() || train.saves.front() > taken) return "";
  if (good == steps.end())
    return "no checkpoint was saved: every step was skipped, so there is nothing that a run from the beginning would "
           "not "
           "make anew";
  return fmt::format(
      "the save due after step {} came after step {}: every step before was skipped, and there was nothing "
      "to save",
      train.saves.front(), taken + 1);
}

}  // namespace ebb::replay
