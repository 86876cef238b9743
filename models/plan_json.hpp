// Plans as JSON text: how `ebb` and `ebb-replay` talk (and back: timeline_file.hpp). A plan file holds the plans of the
// ranks that run together on one host: of the steady step, or of all parts of the job's life. One line an op, keys in a
// fixed order, integers only where the value is an integer (bytes, elements, picoseconds), defaults left out: the same
// plan is always the same bytes. What is read back is checked as far as one document can be (types, ranges, indices,
// order of dependencies); hazards are planner/verify's question.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/plan.hpp"

namespace ebb {

inline constexpr int kPlanJsonVersion = 3;

/// Ascending by rank, then part. Precondition: not empty.
std::string to_json(std::span<const Plan> plans);
inline std::string to_json(const Plan& plan) { return to_json(std::span(&plan, 1)); }

/// `file` is for messages only. InputError with line and column when the text is no JSON, else with the path of the
/// value ("ranks[0].ops[12].stream"). Dependency lists come back in the order of ops. At least one plan,
/// ascending by rank, then by part of life.
std::vector<Plan> plans_from_json(std::string_view text, const std::string& file);

}  // namespace ebb
