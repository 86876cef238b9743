// `ebb-replay equivalence JOB [--policy P ...]`, or of two plan files; with --life through a whole life. The policy is
// what the options say and the job's own offload block, as `ebb simulate` puts them together. Exit 0: equal and lower;
// 1: not; an exit code of `ebb simulate` other than 0 is passed on.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "models/errors.hpp"
#include "models/terminal_text.hpp"
#include "models/text_output.hpp"
#include "replay/commands.hpp"
#include "replay/ebb_program.hpp"
#include "replay/equivalence.hpp"
#include "replay/life_equivalence.hpp"
#include "replay/life_files.hpp"
#include "replay/plan_files.hpp"
#include "replay/processes.hpp"
#include "replay/talk.hpp"

namespace ebb::replay::cli {

namespace {

int simulate(const std::string& job, std::span<const std::string> options, const std::string& file) {
  std::vector<std::string> arguments = {"simulate", job};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), {"-o", file});
  if (talk().quiet) arguments.emplace_back("--quiet");
  if (talk().verbose) arguments.emplace_back("--verbose");
  return run_ebb(arguments);
}

/// The same for the policy. Where no option names it, the job has to.
int simulate_policy(const EquivalenceOptions& options, std::span<const std::string> words, const std::string& file) {
  const int code = simulate(options.job, words, file);
  if (code == 2 && std::find(words.begin(), words.end(), "--policy") == words.end())
    write_message("ebb-replay",
                  "the policy is that of the job's offload block; name one with --policy, or give two plan files");
  return code;
}

const std::vector<std::string> kBaseline = {"--policy", "resident"};

int compare(const EquivalenceOptions& options, const PlanFile& resident, const PlanFile& policy) {
  TrainingOptions training;
  training.seed = options.seed;
  const Activity activity("comparison");
  const Equivalence result =
      options.device == Device::cpu
          ? compare_on_cpu(resident.programs, policy.programs, training, options.steps)
          : compare_on_gpu(resident.programs, policy.programs, training, options.steps, options.devices);
  write_stdout(options.json ? to_json(result) : to_text(result));
  return result.holds() ? 0 : 1;
}

/// What messages call the plans that lie in a file of ours.
std::string shown(const std::string& job, std::span<const std::string> options) {
  std::string text = fmt::format("the plans of {}", job);
  for (const std::string& option : options) text.append(" ").append(option);
  return text;
}

/// Both policies' lives on one number of GPUs.
struct Lives {
  LifeFile resident;
  LifeFile policy;
};

/// The job's own GPUs where `gpus` is 0. Returns the exit code of ebb where it fails.
int read_lives(const EquivalenceOptions& options, std::int64_t gpus, std::optional<Lives>& lives) {
  const ScratchDirectory scratch;
  const auto read = [&](std::vector<std::string> words, const char* name, LifeFile& file) {
    const std::string path = (scratch.path() / name).string();
    words.emplace_back("--life");
    if (gpus > 0) words.insert(words.end(), {"--gpus", fmt::format("{}", gpus)});
    if (const int code = simulate_policy(options, words, path); code != 0) return code;
    file = read_life_file(path, shown(options.job, words));
    return 0;
  };
  Lives found;
  // The policy first: where neither the job nor an option names one, ebb says so at once.
  if (const int code = read(options.policy, "policy.json", found.policy); code != 0) return code;
  if (const int code = read(kBaseline, "resident.json", found.resident); code != 0) return code;
  lives = std::move(found);
  return 0;
}

/// Half the GPUs; of one GPU two, which only a CPU has for sure. 0: the number does not change.
std::int64_t other_gpus(const EquivalenceOptions& options, std::int64_t gpus) {
  if (options.reshard) return *options.reshard;
  if (gpus > 1 && gpus % 2 == 0) return gpus / 2;
  return gpus == 1 && options.device == Device::cpu ? 2 : 0;
}

/// The same on `gpus`. ebb writes the plans of one host: where so many ranks are not on one, and nobody asked for that
/// number, the life does without.
int read_resharded(const EquivalenceOptions& options, std::int64_t gpus, std::optional<Lives>& other) {
  if (const int code = read_lives(options, gpus, other); code != 0) return code;
  if (static_cast<std::int64_t>(other->policy.ranks.size()) == gpus) return 0;
  const std::string why = fmt::format("the job's cluster has {} of {} GPUs on a host, and a life runs on one",
                                      other->policy.ranks.size(), gpus);
  if (options.reshard) throw InputError({.file = "--reshard"}, why, "name a number that one host has, or none");
  remark(fmt::format("not resumed on {} ranks: {}", gpus, why));
  other.reset();
  return 0;
}

LifePlans plans_of(const LifeFile& own, const LifeFile* other) {
  return {own.ranks, other != nullptr ? std::span<const LifeRank>(other->ranks) : std::span<const LifeRank>()};
}

int compare_files(const EquivalenceOptions& options, const Lives& own, const Lives* other) {
  const LifePlans resident = plans_of(own.resident, other != nullptr ? &other->resident : nullptr);
  const LifePlans policy = plans_of(own.policy, other != nullptr ? &other->policy : nullptr);
  LifeComparison comparison;
  comparison.shape = options.shape;
  comparison.shape.reshard = other != nullptr;
  comparison.disturbed = standard_life(kShortLife);
  comparison.disturbed.reshard = other != nullptr;
  comparison.disturbed.skip_value = options.shape.skip_value;
  if (options.shape.skips.empty()) comparison.disturbed.skips.clear();
  comparison.training.seed = options.seed;
  comparison.training.scaling = options.scaling;
  const ScratchDirectory scratch(options.checkpoint);
  comparison.directory = scratch.path().string();
  LifeExecutor executor = options.device == Device::cpu ? cpu_executor(policy) : gpu_executor(policy, options.devices);
  if (!options.disturbed) executor.disturbed.clear();
  const Activity activity("comparison");
  const LifeEquivalence result = compare_lives(resident, policy, comparison, executor);
  write_stdout(options.json ? to_json(result) : to_text(result));
  return result.holds() ? 0 : 1;
}

int run_life(const EquivalenceOptions& options) {
  if (process_place(environment()).size > 1)
    throw InputError({.file = "--life"}, "a life is compared in one process, and several were started",
                     "start ebb-replay by itself: it runs all ranks of the host");
  if (options.other) {
    const Lives files{read_life_file(options.job), read_life_file(*options.other)};
    return compare_files(options, files, nullptr);
  }
  std::optional<Lives> own;
  std::optional<Lives> other;
  if (const int code = read_lives(options, 0, own); code != 0) return code;
  const auto ranks = static_cast<std::int64_t>(own->policy.ranks.size());
  const std::int64_t gpus = other_gpus(options, ranks);
  if (gpus == ranks)
    throw InputError({.file = "--reshard"}, fmt::format("the job has {} GPUs already", gpus),
                     "name another number, or none");
  if (gpus > 0) {
    if (const int code = read_resharded(options, gpus, other); code != 0) {
      write_message("ebb-replay",
                    fmt::format("the life goes on from its second save on {} GPUs; name another number that the job "
                                "can run on, or none: --reshard",
                                gpus));
      return code;
    }
  }
  return compare_files(options, *own, other ? &*other : nullptr);
}

}  // namespace

int run_equivalence(const EquivalenceOptions& options) {
  if (options.life) return run_life(options);
  if (options.other) return compare(options, read_plan_file(options.job), read_plan_file(*options.other));
  const ScratchDirectory scratch;
  const std::string resident = (scratch.path() / "resident.json").string();
  const std::string policy = (scratch.path() / "policy.json").string();
  // The policy first: where neither the job nor an option names one, ebb says so at once.
  if (const int code = simulate_policy(options, options.policy, policy); code != 0) return code;
  if (const int code = simulate(options.job, kBaseline, resident); code != 0) return code;
  return compare(options, read_plan_file(resident, shown(options.job, kBaseline)),
                 read_plan_file(policy, shown(options.job, options.policy)));
}

}  // namespace ebb::replay::cli
