// MemoryFigures as JSON, as every report of a run on GPUs writes them.
#pragma once

#include <nlohmann/json.hpp>

#include "models/json_fields.hpp"
#include "models/timeline_file.hpp"

namespace ebb::replay {

Json memory_json(const MemoryFigures& memory);  // run_report.cpp

}  // namespace ebb::replay
