// The blocks of a job beyond its sizes (models/run_settings_yaml.cpp reads them).
#pragma once

#include "models/schema/schema_parts.hpp"

namespace ebb::schema {

std::vector<Field> run_settings_fields();

}  // namespace ebb::schema
