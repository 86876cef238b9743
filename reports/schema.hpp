// JSON Schemas of Ebb's answers: what `--json` prints. Those of files that Ebb reads: models/schema/schema.hpp. Both
// are what `ebb schema` prints.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ebb::reports {

/// plan, simulate, ...: the document whose `format` is "ebb-answer-" and this.
std::vector<std::string_view> answer_schema_names();

/// The schema of one of them. Keys that it does not name are allowed (answer_head.hpp).
std::string answer_schema(std::string_view name);

/// Of any of them.
std::string any_answer_schema();

}  // namespace ebb::reports
