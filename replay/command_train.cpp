// `ebb-replay train LIFE ...`: a life's plans from init or a checkpoint to a given step, saving on the way.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "models/errors.hpp"
#include "models/text_output.hpp"
#include "replay/commands.hpp"
#include "replay/life_files.hpp"
#include "replay/processes.hpp"
#include "replay/train_report.hpp"

namespace ebb::replay::cli {

namespace {

namespace fs = std::filesystem;

TrainScript script_of(const TrainOptions& options) {
  TrainWishes wishes;
  wishes.training = options.execute.training;
  wishes.steps = options.steps;
  wishes.checkpoint = options.checkpoint;
  wishes.save_every = options.save_every;
  wishes.keep = options.keep;
  wishes.resume = options.resume;
  wishes.load = options.load;
  wishes.load_params = options.load_params;
  return train_script(wishes);
}

/// What the script needs beside the steps; and injections that hit a rank that is here.
void check_file(const LifeFile& file, const TrainScript& train) {
  const auto need = [&](LifePart part) {
    if (file.ranks.front().programs[static_cast<std::size_t>(part)]) return;
    throw InputError({.file = file.name}, fmt::format("it has no plan of the part {}", name_of(part)),
                     "write it with ebb simulate JOB --policy P --life -o FILE");
  };
  if (!train.from.empty()) need(train.parameters ? LifePart::load_params : LifePart::load);
  if (train.from.empty() || train.parameters) need(LifePart::first_step);
  if (!train.saves.empty()) need(LifePart::save);
  for (const Injection& injection : train.script.training.injections) {
    const auto here = [&](const LifeRank& rank) { return step_of(rank).rank == injection.rank; };
    if (std::none_of(file.ranks.begin(), file.ranks.end(), here))
      throw InputError(
          {.file = "--inject"}, fmt::format("the file has no rank {}", injection.rank),
          fmt::format("ranks {} to {}", step_of(file.ranks.front()).rank, step_of(file.ranks.back()).rank));
  }
}

LifeRun run_on_cpu(const LifeFile& file, const TrainOptions& options, const LifeScript& script) {
  std::vector<Program> steps;
  for (const LifeRank& rank : file.ranks) steps.push_back(*rank.programs[static_cast<std::size_t>(LifePart::step)]);
  check_reference_size(steps);
  LifeRun run;
  run.ranks = reference_life(file.ranks, script, options.execute.slow);
  return run;
}

/// What one save of these ranks writes: their state, and their part of the parameters.
Bytes bytes_of_save(const LifeFile& file) {
  Bytes bytes{0};
  for (const LifeRank& rank : file.ranks) {
    const Plan& plan = step_of(rank);
    const std::int64_t per_element = plan.precision.state_bytes() + size_of(plan.precision.params);
    for (const PlanShard& shard : plan.shards) bytes += Bytes{shard.numel.value * per_element};
  }
  return bytes;
}

/// Once before and once after the run, as disks differ from minute to minute; the faster one counts.
class StorageReference {
 public:
  StorageReference(const TrainOptions& options, const LifeFile& file) {
    if (!options.storage_reference) return;
    if (process_place(environment()).size > 1)
      throw InputError({.file = "--storage-reference"}, "it times one process's writes, and several were started",
                       "start ebb-replay by itself: it runs all ranks of the host");
    directory_ = *options.checkpoint;
    bytes_ = bytes_of_save(file);
    writers_ = static_cast<int>(file.ranks.size());
    std::error_code failed;
    fs::create_directories(directory_, failed);  // the first write says what is wrong
    before_ = measure_large_writes(directory_, bytes_, writers_);
  }
  std::optional<StorageRate> rate() const {
    if (!before_) return std::nullopt;
    const StorageRate after = measure_large_writes(directory_, bytes_, writers_);
    return after.rate().value > before_->rate().value ? after : before_;
  }

 private:
  std::string directory_;
  Bytes bytes_{0};
  int writers_ = 1;
  std::optional<StorageRate> before_;
};

}  // namespace

int run_train(const TrainOptions& options) {
  const LifeFile file = read_life_file(options.life);
  TrainResult result;
  result.script = script_of(options);
  result.on_gpu = options.device == Device::gpu;
  check_file(file, result.script);
  for (const LifeRank& rank : file.ranks) result.ranks.push_back(step_of(rank).rank);
  const StorageReference storage(options, file);
  const LifeScript& script = result.script.script;
  result.run = result.on_gpu ? execute_life(file.ranks, script, options.execute) : run_on_cpu(file, options, script);
  if (!result.run.first_process) return 0;  // the first of several processes has all ranks and reports
  result.storage = storage.rate();
  write_stdout(options.json ? to_json(result) : to_text(result));
  return 0;
}

}  // namespace ebb::replay::cli
