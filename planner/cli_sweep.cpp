// `ebb sweep JOB --set KEY=V1,V2`: one answer for every combination of values. Exit 1: none of them fits.
#include <algorithm>

#include "planner/cli.hpp"
#include "planner/cli_output.hpp"
#include "planner/sweep.hpp"
#include "reports/sweep_json.hpp"
#include "reports/sweep_text.hpp"

namespace ebb::cli {

int run_sweep(const SweepOptions& options) {
  Megatron megatron = Megatron::any;
  if (options.megatron) megatron = parse_megatron(*options.megatron, Place{"--megatron"});
  std::vector<SweepAxis> axes;
  for (const std::string& setting : options.settings) axes.push_back(parse_axis(setting));
  const std::vector<SweepRow> rows = sweep(options.job, axes, megatron, [&](Job& job) {
    set_budgets(job, options.budget, options.host_budget);
    set_offload(job, options.candidate);
  });
  reports::SweepReport report{.job = options.job, .ebb_version = EBB_VERSION, .keys = {}, .rows = {}};
  for (const SweepAxis& axis : axes) report.keys.push_back(axis.key);
  for (const SweepRow& row : rows) {
    report.rows.push_back({row.values, std::nullopt, row.fits, row.obstacle});
    if (row.answer) report.rows.back().candidate = report_of(*row.answer);
  }
  write_stdout(options.json ? reports::to_json(report) : reports::to_text(report, reports::style_of(1)));
  return std::any_of(rows.begin(), rows.end(), [](const SweepRow& row) { return row.fits; }) ? 0 : 1;
}

}  // namespace ebb::cli
