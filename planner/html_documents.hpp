// The JSON documents that `ebb plan`, `simulate`, `diff`, `fit`, `sweep` and `explain` print, and timelines, read back
// for `ebb report`. Documents of another version are refused; keys that a document does not know are passed over; those
// that a page needs must be there.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "models/timeline_file.hpp"
#include "reports/answer.hpp"
#include "reports/diff.hpp"
#include "reports/explain.hpp"
#include "reports/fit.hpp"
#include "reports/sweep.hpp"

namespace ebb::cli {

using HtmlDocument = std::variant<reports::PlanReport, reports::SimulateReport, reports::DiffReport, reports::FitReport,
                                  reports::SweepReport, reports::ExplainReport, TimelineFile>;

/// InputError for anything else, with the path of what is wrong.
HtmlDocument document_from_json(std::string_view text, const std::string& file);

}  // namespace ebb::cli
