// The JSON documents that `ebb plan`, `ebb simulate` and `ebb diff` print, read back for `ebb report`. Keys that a
// document does not know (of a later version) are passed over; those that a page needs must be there.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "models/timeline_file.hpp"
#include "reports/answer.hpp"
#include "reports/diff.hpp"

namespace ebb::cli {

using HtmlDocument = std::variant<reports::PlanReport, reports::SimulateReport, reports::DiffReport, TimelineFile>;

/// InputError for anything else, with the path of what is wrong.
HtmlDocument document_from_json(std::string_view text, const std::string& file);

}  // namespace ebb::cli
