// What `--html` puts into a page: of every candidate its life and the predicted timeline of the slowest rank; and a
// run's timeline beside the prediction of the same plan. The writer is reports/html.hpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/job.hpp"
#include "planner/cli_options.hpp"
#include "reports/html.hpp"

namespace ebb::cli {

struct HtmlRequest {
  const Job& job;
  std::optional<std::string> measured_file;  // a timeline of `ebb-replay run` of one of the job's plans
  std::string command;                       // that writes the page
  std::vector<std::string> worst_case = {};  // --robust: what the job at its worst assumes
};

/// InputError where the measured timeline is of another job or plan.
reports::HtmlReport html_report(const HtmlRequest& request, const reports::PlanReport& plan);
reports::HtmlReport html_report(const HtmlRequest& request, const reports::SimulateReport& simulated);

/// The command that writes the page.
std::string html_command(const PlanOptions& options);
std::string html_command(const SimulateOptions& options);
std::string html_command(const ReportOptions& options);

/// XXH3-128, 32 hexadecimal digits.
std::string hash_of(std::string_view bytes);

}  // namespace ebb::cli
