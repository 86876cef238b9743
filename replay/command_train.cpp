// `ebb-replay train LIFE ...`: a life's plans from init or a checkpoint to a given step, saving on the way.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "models/errors.hpp"
#include "models/text_output.hpp"
#include "replay/commands.hpp"
#include "replay/life_files.hpp"
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

/// Once before and once after the run, as disks differ from minute to minute; the faster one counts.
StorageRate faster(const StorageRate& one, const StorageRate& other) {
  return one.rate().value > other.rate().value ? one : other;
}

}  // namespace

int run_train(const TrainOptions& options) {
  const LifeFile file = read_life_file(options.life);
  TrainResult result;
  result.script = script_of(options);
  result.on_gpu = options.device == Device::gpu;
  check_file(file, result.script);
  for (const LifeRank& rank : file.ranks) result.ranks.push_back(step_of(rank).rank);
  const LifeScript& script = result.script.script;
  result.run = result.on_gpu ? execute_life(file.ranks, script, options.execute) : run_on_cpu(file, options, script);
  if (!result.run.first_process) return 0;  // the first of several processes has all ranks and reports
  if (options.storage_reference) {
    const std::vector<CheckpointTotal> totals = checkpoint_totals(result.run.ranks);
    const auto last = std::find_if(totals.rbegin(), totals.rend(), [](const auto& total) { return total.saved; });
    EBB_ASSERT(last != totals.rend());  // the last step is always saved
    const int writers = static_cast<int>(result.run.ranks.size());
    result.storage = faster(measure_large_writes(*options.checkpoint, last->bytes, writers),
                            measure_large_writes(*options.checkpoint, last->bytes, writers));
  }
  write_stdout(options.json ? to_json(result) : to_text(result));
  return 0;
}

}  // namespace ebb::replay::cli
