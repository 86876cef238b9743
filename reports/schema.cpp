#include "reports/schema.hpp"

#include <fmt/format.h>

#include <utility>

#include "models/errors.hpp"
#include "reports/answer_head.hpp"
#include "reports/schema_parts.hpp"

namespace ebb::reports {

namespace schema {

Json bytes(std::string_view description) { return integer(description, std::numeric_limits<std::int64_t>::min()); }
Json seconds(std::string_view description) { return number(description); }

Json named_bytes(std::string_view description) {
  return list(description, object("", {{"name", text("What."), required}, {"bytes", bytes("How much."), required}}));
}

Json texts(std::string_view description) { return list(description, text("")); }

Json answer(std::string_view name, std::string_view description, std::vector<Field> fields) {
  std::vector<Field> all = {{"format", constant(fmt::format("ebb-answer-{}", name)), required},
                            {"version", constant(kAnswerVersion), required}};
  for (Field& field : fields) all.push_back(std::move(field));
  return object(description, all);
}

std::vector<Field> joined(std::vector<Field> a, const std::vector<Field>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Field ebb_version() { return {"ebb_version", text("Version of the program that answered."), required}; }

}  // namespace schema

namespace {

using schema::Json;

constexpr std::pair<std::string_view, Json (*)()> kAnswers[] = {
    {"plan", schema::plan_answer},
    {"simulate", schema::simulate_answer},
    {"life", schema::life_answer},
    {"plan-times", schema::plan_times_answer},
    {"explain", schema::explain_answer},
    {"layout", schema::layout_answer},
    {"check", schema::check_answer},
    {"score", schema::score_answer},
    {"diff", schema::diff_answer},
    {"fit", schema::fit_answer},
    {"sweep", schema::sweep_answer},
    {"doctor", schema::doctor_answer},
    {"learn", schema::learn_answer},
    {"models", schema::models_answer},
    {"model", schema::model_answer},
    {"clusters", schema::clusters_answer},
    {"cluster", schema::cluster_answer},
    {"policies", schema::policies_answer},
    {"policy", schema::policy_answer},
    {"run", schema::run_answer},
    {"run-numbers", schema::run_numbers_answer},
    {"train", schema::train_answer},
    {"equivalence", schema::equivalence_answer},
    {"life-equivalence", schema::life_equivalence_answer},
    {"checkpoint", schema::checkpoint_answer},
    {"calibrate", schema::calibrate_answer},
};

/// Without the ban on other keys, which the same version of an answer may bring.
void open_to_new_keys(Json& schema) {
  if (schema.is_object() && schema.contains("properties")) schema.erase("additionalProperties");
  for (Json& inner : schema)
    if (inner.is_structured()) open_to_new_keys(inner);
}

}  // namespace

std::vector<std::string_view> answer_schema_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, make] : kAnswers) names.push_back(name);
  return names;
}

std::string answer_schema(std::string_view name) {
  for (const auto& [known, make] : kAnswers)
    if (known == name) {
      Json schema = make();
      open_to_new_keys(schema);
      return schema::document(fmt::format("answer-{}", name), kAnswerVersion, fmt::format("Answer of Ebb: {}", name),
                              schema);
    }
  EBB_ASSERT(false);
  return "";
}

std::string any_answer_schema() {
  std::vector<Json> all;
  for (const auto& [name, make] : kAnswers) {
    all.push_back(make());
    open_to_new_keys(all.back());
  }
  return schema::document("answer", kAnswerVersion, "Answer of Ebb",
                          schema::any_of("Any document that --json prints; `format` says which.", all));
}

}  // namespace ebb::reports
