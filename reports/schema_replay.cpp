// Schemas of what ebb-replay answers.
#include "models/plan.hpp"
#include "reports/schema_parts.hpp"

namespace ebb::reports::schema {

namespace {

/// 64 bits that stand for all bits of something.
Json digest(std::string_view description) {
  Json schema = text(description);
  schema["pattern"] = "^[0-9a-f]{16}$";
  return schema;
}

/// null: it is infinite or not a number.
Json real(std::string_view description) { return nullable(number(description)); }

std::vector<Field> step_numbers() {
  return {{"loss", real("The stand-in loss."), required},
          {"sum_of_squares", real("Of all gradients: the square of their norm."), required},
          {"digest", digest("Of all state after the step; 0: not asked for."), required}};
}

Json numbers() {
  return object("What the step computes.", {{"steps", list("In order.", object("", step_numbers())), required},
                                            {"final_state", digest("Of all state at the end."), required}});
}

Json spread(std::string_view description) {
  return object(description, {{"median_s", seconds("The median repeat."), required},
                              {"least_s", seconds("The fastest."), required},
                              {"most_s", seconds("The slowest."), required},
                              {"repeats", integer("So many."), required}});
}

Json memory() {
  return object("Memory in the run.",
                {{"live_peak", bytes("Highest live device memory."), required},
                 {"live_by_phase", mapping("... of each phase.", bytes(""))},
                 {"torch_allocated_peak", bytes("As torch.cuda.max_memory_allocated() would say.")},
                 {"torch_reserved_peak", bytes("The same of reserved bytes.")},
                 {"driver_peak", bytes("Used according to the driver, context included.")},
                 {"instruments", bytes("The replay's own device memory.")},
                 {"pinned", bytes("Pinned host memory."), required},
                 {"pageable", bytes("Pageable host memory."), required}});
}

Field provenance() { return {"provenance", mapping("Device, driver and what else a run knows.", text("")), required}; }
Field remarks() { return {"remarks", texts("What to know of the run."), required}; }

Json orders(std::string_view description) {
  return list(description, object("", {{"order", text("Which."), required},
                                       {"equal", boolean("Bit for bit."), required},
                                       {"difference", text("The first difference.")}}));
}

Json device() { return one_of_words("Where it ran.", {"gpu", "cpu"}); }

}  // namespace

Json run_answer() {
  const Json rates = object("Copies of the median step: bytes over the time in which some ran.",
                            {{"h2d_bytes_per_s", number("Host to device."), required},
                             {"d2h_bytes_per_s", number("Device to host."), required},
                             {"together_bytes_per_s", number("Both."), required}});
  return answer("run", "ebb-replay run on GPUs.",
                {{"ranks",
                  list("Ascending.", object("", {{"rank", integer("Global rank."), required},
                                                 {"step", spread("The whole step."), required},
                                                 {"optimizer_step", spread("Its optimizer step."), required},
                                                 {"copies_in_step", rates, required},
                                                 {"memory", memory(), required},
                                                 {"numbers", numbers(), required}})),
                  required},
                 provenance(),
                 remarks()});
}

Json run_numbers_answer() {
  return answer(
      "run-numbers", "ebb-replay run --device cpu.",
      {{"ranks",
        list("Ascending.", object("", {{"rank", integer("Global rank."), required},
                                       {"live_peak", bytes("Highest live device memory."), required},
                                       {"strays", integer("Accesses to memory that was not allocated."), required},
                                       {"numbers", numbers(), required}})),
        required}});
}

Json train_answer() {
  std::vector<Field> step = step_numbers();
  step.push_back({"step", integer("From 1 on."), required});
  step.push_back({"norm", real("Of the gradients."), required});
  step.push_back({"skipped", boolean("Not finite: no update."), required});
  step.push_back({"loss_scale", number("In this step."), required});
  const Json place = object("Where training stands.", {{"steps", integer("Done."), required},
                                                       {"adam_steps", integer("... with an update."), required},
                                                       {"seed", digest("Of the data to come."), required},
                                                       {"loss_scale", number("Of the next step."), required}});
  const Json peaks = list("By part of life.", object("", {{"part", names<LifePart>("Which.", kPartCount), required},
                                                          {"live", bytes("Highest live device memory."), required},
                                                          {"planned", bytes("... as the plan has it."), required}}));
  const Json rank = object("", {{"rank", integer("Global rank."), required},
                                {"steps", list("In order.", object("", step)), required},
                                {"place", place, required},
                                {"final_state", digest("Of all state."), required},
                                {"parameters", digest("Of all parameters."), required},
                                {"strays", integer("Accesses to memory that was not allocated."), required},
                                {"peaks", peaks, required},
                                {"memory", memory()}});
  const Json checkpoint = object("", {{"saved", boolean("Or loaded."), required},
                                      {"directory", text("Where."), required},
                                      {"bytes", bytes("Of all ranks."), required},
                                      {"seconds", seconds("All of it."), required},
                                      {"storage_seconds", seconds("Files alone."), required},
                                      {"bytes_per_s", number("Of all of it."), required}});
  return answer("train", "ebb-replay train.",
                {{"from", nullable(text("The checkpoint that it began with.")), required},
                 {"parameters_only", boolean("... of which it took only parameters."), required},
                 {"first", integer("Steps done before."), required},
                 {"saves", list("After which steps it saved.", integer("")), required},
                 {"ranks", list("Ascending.", rank), required},
                 {"checkpoints", list("Written and read.", checkpoint), required},
                 {"storage", object("Plain large writes beside them.", {{"bytes", bytes(""), required},
                                                                        {"seconds", seconds(""), required},
                                                                        {"direct", boolean("O_DIRECT."), required},
                                                                        {"bytes_per_s", number(""), required}})},
                 provenance(),
                 remarks()});
}

Json equivalence_answer() {
  return answer("equivalence", "ebb-replay equivalence: a policy against resident.",
                {{"policy", text("Which."), required},
                 {"device", device(), required},
                 {"equivalent", boolean("Equal and lower."), required},
                 {"equal", boolean("Bit for bit, in every order."), required},
                 {"lower", boolean("Its peak is."), required},
                 {"verdict", text("In a sentence."), required},
                 {"orders", orders("Orders of execution that were tried."), required},
                 {"peaks",
                  list("Live device memory.", object("", {{"what", text("Which peak."), required},
                                                          {"resident", bytes(""), required},
                                                          {"policy", bytes(""), required}})),
                  required},
                 {"steps", list("In order.", object("", step_numbers())), required}});
}

Json life_equivalence_answer() {
  std::vector<Field> step = step_numbers();
  step.push_back({"step", integer("From 1 on."), required});
  step.push_back({"skipped", boolean("Not finite: no update."), required});
  const Json part = object("", {{"part", text("Which."), required},
                                {"ranks", integer("So many."), required},
                                {"resident", bytes("Peak of resident."), required},
                                {"policy", bytes("Peak of the policy."), required},
                                {"planned", bytes("... as its plan has it."), required},
                                {"state", bytes("State in it."), required},
                                {"demand", text("What is asked of it."), required},
                                {"met", boolean("Whether it does that."), required},
                                {"as_planned", boolean("Whether the plan said so."), required},
                                {"bound", bytes("What it may be at most.")}});
  return answer("life-equivalence", "ebb-replay equivalence --life: a whole life against that of resident.",
                {{"policy", text("Which."), required},
                 {"device", device(), required},
                 {"equivalent", boolean("Equal, lower and within bounds."), required},
                 {"equal", boolean("Bit for bit."), required},
                 {"lower", boolean("Peaks are."), required},
                 {"bounded", boolean("Peaks are within their bounds."), required},
                 {"verdict", text("In a sentence."), required},
                 {"ranks", integer("Of the job."), required},
                 {"other_ranks", integer("Of the job that goes on; 0: none."), required},
                 {"life", text("What happens in it."), required},
                 {"disturbed", text("The same of the disturbed one."), required},
                 {"orders", orders("Lives that were tried."), required},
                 {"parts", list("By part of life.", part), required},
                 {"unplanned", text("The first peak that is not the planned one.")},
                 {"steps", list("In order.", object("", step)), required},
                 provenance(),
                 remarks()});
}

Json checkpoint_answer() {
  const Json state =
      object("", {{"type", text("Of its elements."), required}, {"content", digest("Whatever the layout."), required}});
  return answer("checkpoint", "ebb-replay checkpoint: what is in one.",
                {{"checkpoint", text("Where."), required},
                 {"job", text("Whose."), required},
                 {"step", integer("Steps done."), required},
                 {"adam_steps", integer("... with an update."), required},
                 {"loss_scale", number("Of the next step."), required},
                 {"ranks", integer("That wrote it."), required},
                 {"bytes", bytes("Of its files."), required},
                 {"elements", integer("Of each state."), required},
                 {"hashes_checked", boolean("Every byte was read."), required},
                 {"states", mapping("By name.", state)},
                 {"parameters",
                  list("In order.", object("", {{"name", text("Which."), required},
                                                {"shape", list("Row-major.", integer("")), required}})),
                  required}});
}

Json calibrate_answer() {
  return answer("calibrate", "ebb-replay calibrate: figures of this machine.",
                {{"cluster", text("The file that holds them."), required},
                 {"base", text("The cluster whose other values stay."), required},
                 {"figures",
                  list("Measured.", object("", {{"name", text("Which."), required},
                                                {"value", text("Measured, with its unit."), required},
                                                {"base", text("What the base has."), required},
                                                {"residual_median", number("Of the fit, relative.")},
                                                {"residual_worst", number("Of the fit, relative.")}})),
                  required},
                 remarks()});
}

}  // namespace ebb::reports::schema
