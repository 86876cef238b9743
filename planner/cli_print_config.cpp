// `--print-config`: the job as a command reads it, everything in place: the command line over EBB_* variables over the
// file over defaults. What it prints is a job file that gives the same answer.
#include <fmt/format.h>

#include <type_traits>

#include "models/job_yaml.hpp"
#include "planner/cli.hpp"
#include "planner/cli_output.hpp"
#include "planner/sweep.hpp"

namespace ebb::cli {

namespace {

template <class Options>
Job resolved(const Options& options) {
  Settings settings;
  if constexpr (requires { options.settings; }) settings = options.settings;
  if constexpr (std::is_same_v<Options, SweepOptions>)
    for (const std::string& setting : settings)
      if (const SweepAxis axis = parse_axis(setting); axis.values.size() > 1)
        throw InputError(Place{"--print-config"}, fmt::format("a sweep is of {} jobs", axis.values.size()),
                         fmt::format("give {} one value", axis.key));
  Job job = load_job_argument(options.job, settings);
  if constexpr (requires { options.candidate; }) set_offload(job, options.candidate);
  if constexpr (requires { options.budget; }) set_budgets(job, options.budget, options.host_budget);
  return job;
}

struct Printer {
  template <class Options>
  int operator()(const Options& options) const {
    if constexpr (requires { Options{}.job.size(); }) {
      // A plan file is no job.
      if (options.job.empty()) throw InputError(Place{"--print-config"}, "there is no job", "name a job file");
      write_stdout(write_job(resolved(options)));
    }
    return 0;
  }
};

}  // namespace

int print_config(const Command& command) { return std::visit(Printer{}, command); }

}  // namespace ebb::cli
