// `ebb diff PREDICTED MEASURED`: how far a prediction was off, and which assumption. Exit 1 above the threshold or when
// live bytes differ.
#include <fmt/format.h>

#include "models/quantity_text.hpp"
#include "models/text_file.hpp"
#include "planner/cli.hpp"
#include "planner/cli_output.hpp"
#include "planner/cli_talk.hpp"
#include "planner/diff.hpp"
#include "reports/diff_json.hpp"
#include "reports/diff_text.hpp"

namespace ebb::cli {

namespace {

/// "5%" or "0.05".
double threshold_from(const std::string& text) {
  const Place place{"--fail-above"};
  if (text.ends_with('%')) {
    const std::size_t last = text.find_last_not_of(" %");
    return parse_ratio(text.substr(0, last == std::string::npos ? 0 : last + 1), place) / 100;
  }
  const double part = parse_ratio(text, place);
  if (part >= 1)
    throw InputError(place, fmt::format("\"{}\" is that many times the prediction", text),
                     fmt::format("write {}%", text));
  return part;
}

TimelineFile load_timeline(const std::string& file) {
  const Activity activity(fmt::format("reading {}", file));
  return timeline_file_from_json(read_text_file(file, kMostPlanBytes), file);
}

}  // namespace

int run_diff(const DiffOptions& options) {
  const double fail_above = threshold_from(options.fail_above);
  const TimelineFile predicted = load_timeline(options.predicted);
  require_prediction(predicted, options.predicted);
  const TimelineFile measured = load_timeline(options.measured);
  require_run(measured, options.measured);
  reports::DiffReport report = diff(predicted, measured, fail_above, options.predicted, options.measured);
  report.ebb_version = EBB_VERSION;
  write_stdout(options.json ? reports::to_json(report) : reports::to_text(report, reports::style_of(1)));
  return report.failures.empty() ? 0 : 1;
}

}  // namespace ebb::cli
