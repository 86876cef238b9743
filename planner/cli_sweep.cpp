// `ebb sweep JOB --set KEY=V1,V2`: one answer for every combination of values. Exit 1: none of them fits.
#include <algorithm>

#include "models/errors.hpp"
#include "planner/cli.hpp"
#include "planner/cli_output.hpp"
#include "planner/cli_talk.hpp"
#include "planner/sweep.hpp"
#include "reports/sweep_json.hpp"
#include "reports/sweep_text.hpp"

namespace ebb::cli {

namespace {

/// `--policy` and its like would undo what a range of `offload.*` sets.
void require_one_word_on_offload(const std::vector<SweepAxis>& axes, const CandidateOptions& candidate) {
  const bool pinned = candidate.policy || candidate.chunk_numel || candidate.chunk_size_mb || candidate.fraction ||
                      candidate.slots || candidate.cap;
  if (!pinned) return;
  for (const SweepAxis& axis : axes)
    if (axis.key.starts_with("offload"))
      throw InputError({"--set " + axis.key}, "options such as --policy name the schedule already",
                       "say all of it with --set, for instance --set offload.policy=windowed");
}

/// The second would undo the first in every row.
void require_each_key_once(const std::vector<SweepAxis>& axes) {
  for (std::size_t i = 0; i < axes.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (axes[k].key == axes[i].key)
        throw InputError({"--set " + axes[i].key}, "this key has its values already",
                         "give all of them at once: --set " + axes[i].key + "=V1,V2");
}

}  // namespace

int run_sweep(const SweepOptions& options) {
  Megatron megatron = Megatron::any;
  if (options.megatron) megatron = parse_megatron(*options.megatron, Place{"--megatron"});
  std::vector<SweepAxis> axes;
  for (const std::string& setting : options.settings) axes.push_back(parse_axis(setting));
  require_each_key_once(axes);
  require_one_word_on_offload(axes, options.candidate);
  const std::vector<SweepRow> rows = [&] {
    const Activity activity("sweep");
    return sweep(options.job, axes, megatron, [&](Job& job) {
      set_budgets(job, options.budget, options.host_budget);
      set_offload(job, options.candidate);
    });
  }();
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
