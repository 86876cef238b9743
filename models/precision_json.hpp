// Precision as JSON: what decides the bytes of state, gradients and parameters, in plans and in checkpoints alike. What
// else a recipe keeps is not in it.
#pragma once

#include "models/json_fields.hpp"
#include "models/precision.hpp"

namespace ebb {

/// What a recipe does without has no key.
Json precision_json(const Precision& precision);
/// InputError.
Precision read_precision(const JsonValue& json);

}  // namespace ebb
