// `ebb-replay equivalence JOB --policy P ...`, or of two plan files. Exit 0: equal and lower; 1: not; an exit code of
// `ebb simulate` other than 0 is passed on.
#include "models/text_output.hpp"
#include "replay/commands.hpp"
#include "replay/ebb_program.hpp"
#include "replay/equivalence.hpp"
#include "replay/plan_files.hpp"

namespace ebb::replay::cli {

namespace {

int simulate(const std::string& job, std::span<const std::string> policy, const std::string& file) {
  std::vector<std::string> arguments = {"simulate", job};
  arguments.insert(arguments.end(), policy.begin(), policy.end());
  arguments.insert(arguments.end(), {"-o", file});
  return run_ebb(arguments);
}

int compare(const EquivalenceOptions& options, const std::string& resident_file, const std::string& policy_file) {
  const PlanFile resident = read_plan_file(resident_file);
  const PlanFile policy = read_plan_file(policy_file);
  TrainingOptions training;
  training.seed = options.seed;
  const Equivalence result =
      options.device == Device::cpu
          ? compare_on_cpu(resident.programs, policy.programs, training, options.steps)
          : compare_on_gpu(resident.programs, policy.programs, training, options.steps, options.devices);
  write_stdout(options.json ? to_json(result) : to_text(result));
  return result.holds() ? 0 : 1;
}

}  // namespace

int run_equivalence(const EquivalenceOptions& options) {
  if (options.other) return compare(options, options.job, *options.other);
  const ScratchDirectory scratch;
  const std::string resident = (scratch.path() / "resident.json").string();
  const std::string policy = (scratch.path() / "policy.json").string();
  const std::vector<std::string> baseline = {"--policy", "resident"};
  if (const int code = simulate(options.job, baseline, resident); code != 0) return code;
  if (const int code = simulate(options.job, options.policy, policy); code != 0) return code;
  return compare(options, resident, policy);
}

}  // namespace ebb::replay::cli
