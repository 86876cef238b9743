#include "replay/train_script.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/errors.hpp"
#include "replay/checkpoint/checkpoint.hpp"

namespace ebb::replay {

namespace {

/// Which checkpoint, and how many steps it has behind it. Its bytes are checked when it is loaded.
void begin(const TrainWishes& wishes, TrainScript& train) {
  if (wishes.load_params) {
    train.from = *wishes.load_params;
    train.parameters = true;
    return;
  }
  if (wishes.load) {
    const checkpoint::Reader reader(*wishes.load, false);
    train.from = reader.path();
    train.first = static_cast<int>(reader.description().place.steps);
    return;
  }
  if (!wishes.resume) return;
  const std::vector<std::string> known = checkpoint::list(*wishes.checkpoint);
  if (known.empty()) return;
  train.from = known.back();
  train.first = static_cast<int>(checkpoint::Reader(train.from, false).description().place.steps);
}

}  // namespace

TrainScript train_script(const TrainWishes& wishes) {
  TrainScript train;
  begin(wishes, train);
  if (train.first >= wishes.steps)
    throw InputError(
        {.file = "--steps"},
        fmt::format("{} has {} steps behind it, and training ends at {}", train.from, train.first, wishes.steps),
        "raise --steps");
  LifeScript& script = train.script;
  script.training = wishes.training;
  script.keep = wishes.keep;
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

}  // namespace ebb::replay
