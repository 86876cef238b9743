// Schemas of the answers about a machine and its runs: doctor and learn.
#include "reports/schema_parts.hpp"

namespace ebb::reports::schema {

Json doctor_answer() {
  const Json plan = object(
      "What the job's plan wants from each host.",
      {{"job", text("Name of the job."), required},
       {"policy", nullable(text("How optimizer state moves, with its parameters; null: nothing fits.")), required},
       {"hosts", integer("Of the job."), required},
       {"ranks_per_host", integer("Of the job."), required},
       {"pinned_bytes_per_host", bytes("Pinned memory."), required},
       {"pageable_bytes_per_host", bytes("Pageable memory, besides."), required},
       {"checkpoint_bytes", bytes("Of the whole job, on disk."), required}});
  const Json finding = object(
      "", {{"topic", text("Of the host."), required},
           {"verdict", one_of_words("problem: the plan cannot run, or not as predicted.", {"ok", "note", "problem"}),
            required},
           {"figure", text("What was read."), required},
           {"consequence", text("What follows; may be empty."), required},
           {"cure", text("What to do; may be empty."), required}});
  return answer("doctor", "ebb doctor: this machine, and what it means for a plan.",
                {{"plan", nullable(plan), required},
                 {"stands_against_plan", boolean("Whether something does; without a plan nothing can."), required},
                 {"problems", integer("Findings of this verdict."), required},
                 {"notes", integer("Findings of this verdict."), required},
                 {"findings", list("By topic, in a fixed order.", finding), required},
                 ebb_version()});
}

Json learn_answer() {
  const Json left_out = object("Iteration lines that were not used, and why.",
                               {{"first", integer("The first of a run: state is made, memory pinned."), required},
                                {"skipped", integer("No update."), required},
                                {"other_batch", integer("Another batch than the job's."), required},
                                {"after_pause", integer("Something else ran before them, such as a save."), required},
                                {"outliers", integer("Far from the others."), required}});
  const Json rank = object("", {{"rank", integer("Global rank."), required},
                                {"after_iterations", integer("When it reported."), required},
                                {"allocated_bytes", bytes("Live between steps, as logged."), required},
                                {"predicted_allocated_bytes", bytes("... as Ebb has it."), required},
                                {"peak_bytes", bytes("Highest, as logged."), required},
                                {"predicted_peak_bytes", bytes("... as Ebb has it."), required}});
  return answer(
      "learn", "ebb learn: a job with the figures of its own log.",
      {{"job", text("That was to learn."), required},
       {"log", text("What it learned from."), required},
       {"policy", text("That the run used."), required},
       {"offload", text("The policy with its parameters, as a job's offload block has it."), required},
       {"policy_from", one_of_words("Who names it; none: assumed.", {"log", "job", "none"}), required},
       {"iteration_seconds", seconds("A steady iteration."), required},
       {"iteration_deviation_seconds", seconds("Of the lines that were used."), required},
       {"lines", integer("Iteration lines of the log."), required},
       {"lines_used", integer("Of these."), required},
       {"lines_left_out", left_out, required},
       {"step_seconds", seconds("The job's compute.step_seconds."), required},
       {"optimizer_predicted_seconds", seconds("The optimizer's part, as Ebb has it."), required},
       {"optimizer_logged_seconds", nullable(seconds("... as logged; null: it is not.")), required},
       {"ranks", list("That reported memory, ascending.", rank), required},
       {"memory_lines_left_out", integer("A figure is missing, nan or above 1 PiB."), required},
       {"resident_remainder_bytes", bytes("The job's measured.resident_remainder."), required},
       {"peak_remainder_bytes", bytes("The job's measured.peak_remainder."), required},
       {"theoretical_state_bytes", nullable(bytes("By Megatron's own formula, where the log has it.")), required},
       {"assumed", texts("What the log does not say."), required},
       {"warnings", texts("What speaks against the log being one of this job."), required},
       {"job_file", nullable(text("Where the job was written; null: nowhere.")), required},
       {"job_yaml", text("The job itself."), required},
       ebb_version()});
}

}  // namespace ebb::reports::schema
