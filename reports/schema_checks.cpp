// Schemas of the answers that hold something against something: check, score, diff.
#include "models/job_words.hpp"
#include "reports/schema_parts.hpp"

namespace ebb::reports::schema {

namespace {

Json rules(std::string_view description) {
  return list(description, object("", {{"rule", text("Its name."), required},
                                       {"place", text("Where the job says so: file:line:column."), required},
                                       {"key", text("The key that says so."), required},
                                       {"problem", text("What is wrong."), required},
                                       {"reason", text("Why that does not work."), required},
                                       {"cure", text("What does."), required},
                                       {"source", text("Who says so."), required}}));
}

Json score_case() {
  const auto modelled = [](Json schema) { return nullable(std::move(schema)); };
  return object("", {{"id", text("Of the case."), required},
                     {"predicted_allocated_bytes", modelled(bytes("Between steps.")), required},
                     {"recorded_allocated_bytes", bytes("Between steps."), required},
                     {"allocated_error", modelled(number("Relative.")), required},
                     {"predicted_peak_bytes", modelled(bytes("In a step.")), required},
                     {"recorded_peak_bytes", bytes("In a step."), required},
                     {"peak_error", modelled(number("Relative.")), required},
                     {"predicted_iteration_seconds", modelled(seconds("A step.")), required},
                     {"recorded_iteration_seconds", nullable(seconds("A step.")), required},
                     {"reason", nullable(text("Why it is not modelled.")), required},
                     {"traits", texts("What is special about it."), required},
                     {"unheeded_arguments", texts("Arguments that say nothing to Ebb."), required},
                     {"terms", named_bytes("What is allocated between steps."), required},
                     {"peak_terms", named_bytes("What is alive at the peak."), required},
                     {"allocated_remainder_bytes", modelled(bytes("Recorded less predicted.")), required},
                     {"peak_remainder_bytes", modelled(bytes("Recorded less predicted.")), required}});
}

std::vector<Field> error_fields() {
  return {{"cases", integer("That have this figure."), required},
          {"median", nullable(number("Relative, without sign.")), required},
          {"p90", nullable(number("Nine of ten are below.")), required},
          {"worst", nullable(number("The largest.")), required},
          {"bias", nullable(number("The mean, with sign.")), required}};
}

Json errors(std::string_view description) { return object(description, error_fields()); }

Json allocated_errors() {
  std::vector<Field> fields = error_fields();
  fields.push_back({"within_1_percent_or_8_mib", integer("So many cases."), required});
  fields.push_back({"within_3_percent_or_40_mib", integer("So many cases."), required});
  return object("Errors of allocated memory between steps.", fields);
}

Json diff_time(std::string_view description) {
  return object(description, {{"predicted_seconds", seconds("Predicted."), required},
                              {"measured_seconds", seconds("Measured: the median repeat."), required},
                              {"measured_least_seconds", seconds("The fastest repeat."), required},
                              {"measured_most_seconds", seconds("The slowest repeat."), required},
                              {"difference_seconds", seconds("Measured less predicted."), required},
                              {"relative", number("... over measured."), required}});
}

Json diff_class() {
  return object("", {{"name", text("Kind of operation."), required},
                     {"ops", integer("So many."), required},
                     {"bytes", bytes("That they move."), required},
                     {"busy_predicted_seconds", seconds("Their durations together."), required},
                     {"busy_measured_seconds", seconds("Their durations together."), required},
                     {"rate_predicted", nullable(number("Bytes a second.")), required},
                     {"rate_measured", nullable(number("Bytes a second.")), required},
                     {"exposed_predicted_seconds", seconds("What the step waits for."), required},
                     {"exposed_measured_seconds", seconds("What the step waits for."), required},
                     {"difference_seconds", seconds("Measured less predicted, exposed."), required},
                     {"share", nullable(number("Of the whole difference.")), required}});
}

Json both_bytes(std::string_view description) {
  return list(description, object("", {{"name", text("Of what."), required},
                                       {"predicted_bytes", bytes("Predicted."), required},
                                       {"measured_bytes", bytes("Measured."), required}}));
}

Json diff_memory() {
  return object("", {{"live_equal", boolean("Live bytes are those predicted, in every phase."), required},
                     {"live_peak_predicted_bytes", bytes("Highest live device memory."), required},
                     {"live_peak_measured_bytes", bytes("Highest live device memory."), required},
                     {"live_by_phase", both_bytes("Of each phase."), required},
                     {"host", both_bytes("Host memory."), required},
                     {"of_run", named_bytes("What only a run can know."), required},
                     {"forecast", named_bytes("What the prediction says of that."), required}});
}

}  // namespace

Json check_answer() {
  const Json verdict = object("", {{"policy", choice("Which.", policy_choices()), required},
                                   {"ruled_out", boolean("Whether rules forbid it."), required},
                                   {"because", rules("Which."), required}});
  return answer("check", "ebb check: every rule that a job breaks.",
                {{"job", text("Name of the job."), required},
                 {"model", text("Name of the model."), required},
                 {"cluster", text("Name of the cluster."), required},
                 {"gpus", integer("GPUs of the job."), required},
                 {"megatron", text("Which Megatron was asked for."), required},
                 {"policy", nullable(text("The policy that was asked for.")), required},
                 {"rules", integer("Rules that were looked at."), required},
                 {"violations", rules("Those that it breaks."), required},
                 {"policies", list("What else the job may use.", verdict), required},
                 ebb_version()});
}

Json score_answer() {
  return answer(
      "score", "ebb score: predictions against recorded runs.",
      {{"cases", list("One a run.", score_case()), required},
       {"allocated", allocated_errors(), required},
       {"peak", errors("Errors of the peak in a step."), required},
       {"iteration", errors("Errors of the step's time."), required},
       {"remainders",
        list("What stays, by trait.", object("", {{"trait", text("Which."), required},
                                                  {"cases", integer("That have it."), required},
                                                  {"mean_allocated_bytes", bytes("Recorded less predicted."), required},
                                                  {"mean_peak_bytes", bytes("Recorded less predicted."), required}})),
        required},
       {"file", text("The recorded runs."), required},
       ebb_version()});
}

Json diff_answer() {
  const Json rank = object("", {{"rank", integer("Global rank."), required},
                                {"repeats", integer("Measured steps."), required},
                                {"verdict", text("In a sentence."), required},
                                {"step", diff_time("The whole step."), required},
                                {"optimizer_step", diff_time("The optimizer step."), required},
                                {"phases",
                                 list("Of the step.", object("", {{"name", text("Which."), required},
                                                                  {"predicted_seconds", seconds(""), required},
                                                                  {"measured_seconds", seconds(""), required}})),
                                 required},
                                {"classes", list("By kind of operation.", diff_class()), required},
                                {"memory", diff_memory(), required}});
  return answer(
      "diff", "ebb diff: a prediction against its run.",
      {{"verdict", text("In a sentence."), required},
       {"failures", texts("What is off by more than allowed."), required},
       {"fail_above", number("Allowed, relative."), required},
       {"slowest_rank", integer("The rank that decides."), required},
       {"job", text("Name of the job."), required},
       {"candidate", text("The policy."), required},
       {"cluster", text("Whose figures predicted."), required},
       {"predicted_file", text("The prediction."), required},
       {"measured_file", text("The run."), required},
       {"measured_source", text("predicted or measured."), required},
       {"provenance",
        list("Of the run.", object("", {{"name", text("What."), required}, {"value", text("Which."), required}})),
        required},
       {"ranks", list("Ascending.", rank), required},
       ebb_version()});
}

}  // namespace ebb::reports::schema
