#include "replay/life_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "models/errors.hpp"

namespace ebb::replay {

namespace fs = std::filesystem;

namespace {

constexpr int kStandardSteps = 20;
constexpr int kFreshSteps = 2;

/// A leg that is being told.
class Teller {
 public:
  Teller(LegKind kind, const LifeShape& shape, const LifeSetting& setting) : directory_(setting.directory) {
    leg_.kind = kind;
    leg_.script.training = setting.training;
    leg_.script.keep = 0;
    if (kind != LegKind::fresh) {
      const std::int64_t rank = leg_.other_ranks() ? setting.last_other_rank : setting.last_rank;
      for (const int step : shape.skips) leg_.script.training.injections.push_back({step, rank, shape.skip_value});
    }
    leg_.script.events.push_back({.kind = LifeEvent::Kind::init, .directory = {}});
  }
  Teller& load(int step) {
    add(LifeEvent::Kind::load, own_checkpoints(directory_));
    at_ = step;
    return *this;
  }
  Teller& load_params() {
    add(LifeEvent::Kind::load_params, own_checkpoints(directory_));
    return *this;
  }
  Teller& save() {
    const std::string other = (fs::path(directory_) / "resharded").string();
    add(LifeEvent::Kind::save, leg_.other_ranks() ? other : own_checkpoints(directory_));
    return *this;
  }
  Teller& steps_to(int step) {
    if (step == at_) return *this;
    leg_.script.events.push_back({.kind = LifeEvent::Kind::steps, .steps = step - at_, .directory = {}});
    while (at_ < step) leg_.taken.push_back(++at_);
    return *this;
  }
  Leg done() { return leg_; }

 private:
  void add(LifeEvent::Kind kind, const std::string& directory) {
    leg_.script.events.push_back({.kind = kind, .directory = directory});
  }
  std::string directory_;
  Leg leg_;
  int at_ = 0;
};

std::string list(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += fmt::format("{}{}", text.empty() ? "" : ", ", number);
  return text;
}

}  // namespace

std::string_view name_of(LegKind kind) {
  switch (kind) {
    case LegKind::own:
      return "from init";
    case LegKind::resumed:
      return "resumed";
    case LegKind::resharded:
      return "resharded";
    case LegKind::fresh:
      return "from parameters";
  }
  return "";
}

LifeShape standard_life(int steps) {
  LifeShape shape;
  shape.steps = steps;
  if (steps >= kStandardSteps) return shape;
  shape.skips = {1, 3};
  shape.save_at = 4;
  shape.kill_at = 5;
  shape.reshard_at = 6;
  return shape;
}

void check_shape(const LifeShape& shape) {
  const auto reject = [](const char* option, const std::string& problem, const std::string& cure) {
    throw InputError({.file = option}, problem, cure);
  };
  if (shape.reshard_at >= shape.steps)
    reject("--reshard-at",
           fmt::format("step {} leaves nothing of {} steps for the resume behind it", shape.reshard_at, shape.steps),
           fmt::format("a life takes {} steps or more: raise --steps, or say where it is cut", kShortLife));
  if (shape.kill_at <= shape.save_at)
    reject("--kill-at", fmt::format("step {} is not behind the save at {}", shape.kill_at, shape.save_at),
           "the steps between are those that are lost and taken again");
  if (shape.reshard_at < shape.kill_at)
    reject("--reshard-at", fmt::format("step {} is before the kill at {}", shape.reshard_at, shape.kill_at),
           "the resumed run takes the lost steps again first");
  for (const int step : shape.skips)
    if (step < 1 || step > shape.steps)
      reject("--skip-at", fmt::format("there is no step {} in 1 to {}", step, shape.steps), "");
  int good = 0;  // state that a save could write comes in the first step that is not skipped
  for (int step = 1; step <= shape.save_at; ++step)
    good += std::find(shape.skips.begin(), shape.skips.end(), step) == shape.skips.end() ? 1 : 0;
  if (good == 0)
    reject("--save-at",
           fmt::format("all steps up to {} are skipped, so that there are no moments to save", shape.save_at),
           "save later");
}

std::string to_text(const LifeShape& shape) {
  std::string text = fmt::format("{} steps", shape.steps);
  if (!shape.skips.empty())
    text += fmt::format(", {} skipped ({})", list(shape.skips), std::isnan(shape.skip_value) ? "nan" : "inf");
  text += fmt::format(", saved after {}, reloaded and killed after {}, resumed, saved after {}", shape.save_at,
                      shape.kill_at, shape.reshard_at);
  return text + (shape.reshard ? ", resumed on other ranks" : "");
}

std::string own_checkpoints(const std::string& directory) { return (fs::path(directory) / "own").string(); }

std::vector<Leg> interrupted_life(const LifeShape& shape, const LifeSetting& setting) {
  const auto leg = [&](LegKind kind) { return Teller(kind, shape, setting); };
  std::vector<Leg> legs;
  legs.push_back(leg(LegKind::own)
                     .steps_to(shape.save_at)
                     .save()
                     .steps_to(shape.kill_at)
                     .load(shape.save_at)
                     .steps_to(shape.kill_at)
                     .done());
  Teller resumed = leg(LegKind::resumed).load(shape.save_at).steps_to(shape.reshard_at).save();
  if (!shape.reshard) resumed.steps_to(shape.steps).save();
  legs.push_back(resumed.done());
  if (shape.reshard) legs.push_back(leg(LegKind::resharded).load(shape.reshard_at).save().steps_to(shape.steps).done());
  legs.push_back(leg(LegKind::fresh).load_params().steps_to(kFreshSteps).done());
  return legs;
}

std::vector<Leg> uninterrupted_life(const LifeShape& shape, const LifeSetting& setting) {
  const auto leg = [&](LegKind kind) { return Teller(kind, shape, setting); };
  std::vector<Leg> legs;
  legs.push_back(leg(LegKind::own).steps_to(shape.reshard ? shape.reshard_at : shape.steps).save().done());
  if (shape.reshard) legs.push_back(leg(LegKind::resharded).load(shape.reshard_at).steps_to(shape.steps).done());
  legs.push_back(leg(LegKind::fresh).load_params().steps_to(kFreshSteps).done());
  return legs;
}

void leave_unfinished_save(const std::string& checkpoints, int step) {
  const fs::path partial = fs::path(checkpoints) / fmt::format("step-{:08}.partial", step);
  std::error_code failed;
  fs::create_directories(partial, failed);
  std::ofstream file(partial / "rank-00000.safetensors", std::ios::binary);
  file << "\x10\x27";  // the first bytes of a header's length
  if (failed || !file) throw IoError(fmt::format("cannot write {}", partial.string()));
}

}  // namespace ebb::replay
