// What schemas of answers have in common. Internal to reports/schema_*.cpp.
#pragma once

#include <string_view>
#include <vector>

#include "models/schema/schema_parts.hpp"

namespace ebb::reports::schema {

using namespace ebb::schema;

/// A size or a difference of sizes, in bytes.
Json bytes(std::string_view description);
Json seconds(std::string_view description);
/// [{name, bytes}].
Json named_bytes(std::string_view description);
Json texts(std::string_view description);
/// An answer: `fields` behind what every answer begins with.
Json answer(std::string_view name, std::string_view description, std::vector<Field> fields);
Field ebb_version();
std::vector<Field> joined(std::vector<Field> a, const std::vector<Field>& b);

// What several answers about jobs hold (schema_answers.cpp).
std::vector<Field> candidate_fields();
/// What every answer about one job says of itself and the job.
std::vector<Field> header_fields();
/// Of a life. `with_terms`: what is alive at the peak, too.
std::vector<Field> phase_fields(bool with_terms);

// One a document.
Json plan_answer();
Json simulate_answer();
Json life_answer();
Json plan_times_answer();
Json explain_answer();
Json layout_answer();
Json check_answer();
Json score_answer();
Json diff_answer();
Json fit_answer();
Json sweep_answer();
Json doctor_answer();
Json learn_answer();
Json models_answer();
Json model_answer();
Json clusters_answer();
Json cluster_answer();
Json policies_answer();
Json policy_answer();
// Of ebb-replay:
Json run_answer();
Json run_numbers_answer();
Json train_answer();
Json equivalence_answer();
Json life_equivalence_answer();
Json checkpoint_answer();
Json calibrate_answer();

}  // namespace ebb::reports::schema
