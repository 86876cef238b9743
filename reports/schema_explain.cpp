// The schema of `ebb explain`'s answer (explain_json.cpp writes it).
#include "reports/schema_parts.hpp"

namespace ebb::reports::schema {

namespace {

Json segment() {
  return object("", {{"phase", text("Of the step."), required},
                     {"what", text("Kind of operation."), required},
                     {"stream", text("Where they run."), required},
                     {"waited_for", text("What most of them waited for."), required},
                     {"operations", integer("So many."), required},
                     {"seconds", seconds("On the path."), required},
                     {"percent", number("Of the step; all together 100."), required}});
}

Json path_operation() {
  return object("", {{"op", integer("Into the plan's ops."), required},
                     {"phase", text("Of the step."), required},
                     {"what", text("Kind of operation."), required},
                     {"stream", text("Where it runs."), required},
                     {"start_seconds", seconds("From the step's begin."), required},
                     {"end_seconds", seconds("From the step's begin."), required},
                     {"waited_for", text("Why it started no earlier."), required},
                     {"waited_seconds", seconds("Before its start, with nothing of the path under way."), required}});
}

Json shard_limit() {
  const Json lever = object("", {{"argument", text("Megatron's, with its value."), required},
                                 {"largest_numel", integer("Elements of the largest shard with it."), required}});
  return object(
      "What shards, which Megatron keeps whole, say about chunks.",
      {{"parameter", text("That the largest shard is of."), required},
       {"rank", integer("Global rank."), required},
       {"largest_numel", integer("Elements of the largest shard."), required},
       {"window_bytes", bytes("Its state."), required},
       {"chunk", text("The candidate's own limit, in words; empty: none."), required},
       {"decides", boolean("The largest shard is above that limit, and so the chunk is the shard."), required},
       {"cut", boolean("The policy cuts shards."), required},
       {"explanation", text("How the shard comes about."), required},
       {"levers", list("What was tried and lowers it.", lever), required},
       {"without_effect", texts("What was tried and does not."), required}});
}

Json what_if() {
  return object("", {{"change", text("To the job."), required},
                     {"recommendation", text("For the changed job; empty: none."), required},
                     {"flags", texts("Megatron's flags of it: the words of a command line."), required},
                     {"differs", boolean("From that of the job as it is."), required},
                     {"step_seconds", nullable(seconds("Its step.")), required},
                     {"device_reserved_bytes", nullable(bytes("What the allocator reserves at most.")), required},
                     {"note", text("Why there is no answer."), required}});
}

Json tide() {
  const Json part = object("", {{"phase", text("Which."), required},
                                {"seconds", number("More than resident's; of the step phase all."), required}});
  return object(
      "What tidal would reach, and the fluid bound of its schedule: of the slowest rank.",
      {{"rank", integer("Which."), required},
       {"piece_numel", integer("Elements of a piece."), required},
       {"step_seconds", seconds("The whole step."), required},
       {"device_peak_bytes", bytes("Allocated."), required},
       {"exposed_seconds", seconds("Over resident's step without its optimizer."), required},
       {"bound_seconds", seconds("No schedule below the cap exposes less."), required},
       {"even_bound_seconds", seconds("About the same where both directions share the link evenly."), required},
       {"parts", list("By phase; their sum is exposed_seconds.", part), required},
       {"state_bytes", bytes("Its optimizer state, in whole pieces."), required},
       {"kept_bytes", bytes("Never moves."), required},
       {"in_bytes", bytes("Can come in before the step."), required},
       {"out_bytes", bytes("Can leave behind it."), required},
       {"room_bytes", bytes("For state while the optimizer steps."), required},
       {"cap_bytes", bytes("Live bytes stay below it."), required},
       {"limit", one_of_words("What stands in the way.", {"nothing", "link", "valley", "cap", "second-pass"}),
        required}});
}

Json explanation() {
  const Json bottleneck = object("What decides the step.", {{"resource", text("Which."), required},
                                                            {"seconds", seconds("On the path."), required},
                                                            {"sentence", text("In a sentence."), required}});
  const Json bound = object("", {{"name", text("Which."), required},
                                 {"seconds", seconds("The step phase takes no less."), required},
                                 {"origin", text("Where that comes from."), required}});
  const Json memory =
      object("What no schedule, of whatever policy, can be below.",
             {{"least_bytes", bytes("Allocated at the peak with no optimizer state on the device."), required},
              {"peak_bytes", bytes("... and with this candidate."), required},
              {"rank", integer("Global rank."), required}});
  const Json neighbour = object("", {{"change", text("Against the explained one."), required},
                                     {"verdict", text("What that costs or gains."), required},
                                     {"candidate", object("", candidate_fields()), required}});
  return object(
      "Why the step takes what it takes.",
      {{"rank", integer("The slowest: the path is its."), required},
       {"step_seconds", seconds("Its step."), required},
       {"segments", list("The path that the step took, alike operations together.", segment()), required},
       {"path_operations", integer("Operations of the whole path."), required},
       {"path", list("The first of them.", path_operation()), required},
       {"bottleneck", bottleneck, required},
       {"optimizer_seconds", seconds("The step phase."), required},
       {"added_seconds", seconds("Over the step of resident."), required},
       {"bounds", list("What no schedule on this hardware that moves as much can be below.", bound), required},
       {"memory", memory, required},
       {"neighbours", list("Candidates beside it.", neighbour), required},
       {"shard", shard_limit(), required},
       {"tide", nullable(tide()), required},
       {"what_ifs", list("The job changed in one way, searched again.", what_if()), required}});
}

}  // namespace

Json explain_answer() {
  std::vector<Field> fields = {
      {"chosen", text("Why this candidate."), required},
      {"worst_case", texts("--robust: what was assumed at its worst; empty without."), required},
      {"phase", nullable(text("The phase that was asked for.")), required},
      {"phases", list("Its life, phase by phase.", object("", phase_fields(true))), required},
      {"curve_rank", integer("With a phase: whose memory the curve is.")},
      {"curve_micro_batches", integer("Micro-batches that it shows.")},
      {"micro_batches", integer("Micro-batches of a step.")},
      {"curve",
       list("Live device memory over a step.", fixed_list("", {seconds("When, in seconds."), bytes("Bytes.")}))},
      {"explanation", nullable(explanation()), required}};
  return answer("explain", "ebb explain: what a number consists of.",
                joined(joined(candidate_fields(), fields), header_fields()));
}

}  // namespace ebb::reports::schema
