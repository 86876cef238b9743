// `ebb-replay train LIFE ...`: a life's plans from init or a checkpoint to a given step, saving on the way.
#include <fmt/format.h>

#include <algorithm>

#include "models/errors.hpp"
#include "models/text_output.hpp"
#include "replay/checkpoint/checkpoint.hpp"
#include "replay/commands.hpp"
#include "replay/life_checkpoint.hpp"
#include "replay/life_files.hpp"
#include "replay/processes.hpp"
#include "replay/talk.hpp"
#include "replay/train_report.hpp"

namespace ebb::replay::cli {

namespace {

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
  wishes.seed_given = options.seed_given;
  wishes.scaling_given = options.scaling_given;
  wishes.initial_scale_given = options.initial_scale_given;
  return train_script(wishes);
}

/// `part` is there; a part that saves or loads moves all that it has to.
void need(const LifeFile& file, LifePart part) {
  for (const LifeRank& rank : file.ranks) {
    const std::optional<Program>& program = rank.programs[static_cast<std::size_t>(part)];
    if (!program)
      throw InputError({.file = file.name}, fmt::format("it has no plan of the part {}", name_of(part)),
                       "write it with ebb simulate JOB --policy P --life -o FILE");
    if (part == LifePart::save || part == LifePart::load || part == LifePart::load_params)
      require_all_moved(*program, file.name);
  }
}

/// A step that cannot be skipped would go on into nan.
void need_skip(const LifeFile& file, LifePart step, LifePart skip) {
  need(file, step);
  need(file, skip);
  for (const LifeRank& rank : file.ranks) {
    const Program& program = *rank.programs[static_cast<std::size_t>(step)];
    if (!program.decision.valid())
      throw InputError({.file = file.name},
                       fmt::format("rank {}, part {}: it never looks at the gradient norm, so that no step is skipped",
                                   program.plan->rank, name_of(step)),
                       "write it with ebb simulate JOB --policy P --life -o FILE");
  }
}

/// What the script needs beside the steps; and injections that hit a rank that is here.
void check_file(const LifeFile& file, const TrainScript& train) {
  need_skip(file, LifePart::step, LifePart::skip);
  if (!train.from.empty()) need(file, train.parameters ? LifePart::load_params : LifePart::load);
  if (train.from.empty() || train.parameters) need_skip(file, LifePart::first_step, LifePart::first_skip);
  if (!train.saves.empty()) need(file, LifePart::save);
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

/// Measures beside the last save of the script.
void add_storage_reference(const TrainOptions& options, const LifeFile& file, TrainResult& result) {
  if (!options.storage_reference || result.script.saves.empty()) return;
  if (process_place(environment()).size > 1)
    throw InputError({.file = "--storage-reference"}, "it times one process's writes, and several were started",
                     "start ebb-replay by itself: it runs all ranks of the host");
  result.storage.emplace(*options.checkpoint, bytes_of_save(file), static_cast<int>(file.ranks.size()));
  LifeScript& script = result.script.script;
  script.events.back().measured = true;
  script.beside_save = [&result] { result.storage->measure(); };
}

}  // namespace

int run_train(const TrainOptions& options) {
  const LifeFile file = read_life_file(options.life);
  TrainResult result;
  result.script = script_of(options);
  result.on_gpu = options.device == Device::gpu;
  if (result.script.done) {
    if (process_place(environment()).rank == 0) write_stdout(options.json ? to_json(result) : to_text(result));
    return 0;
  }
  check_file(file, result.script);
  if (options.checkpoint) checkpoint::require_writable(*options.checkpoint);
  for (const LifeRank& rank : file.ranks) result.ranks.push_back(step_of(rank).rank);
  add_storage_reference(options, file, result);
  const LifeScript& script = result.script.script;
  {
    const Activity activity("training");
    result.run = result.on_gpu ? execute_life(file.ranks, script, options.execute) : run_on_cpu(file, options, script);
  }
  if (!result.run.first_process) return 0;  // the first of several processes has all ranks and reports
  if (const std::string remark = put_off_remark(result.script, result.run.ranks.front().steps); !remark.empty())
    result.run.remarks.push_back(remark);
  write_stdout(options.json ? to_json(result) : to_text(result));
  return 0;
}

}  // namespace ebb::replay::cli
