// Schemas of the answers about a job: plan, simulate, layout; and of what these and others hold. Explain has a file of
// its own.
#include "models/job_words.hpp"
#include "models/plan.hpp"
#include "reports/schema_parts.hpp"

namespace ebb::reports::schema {

namespace {

/// A candidate's settings in the forms that people paste.
Json forms() {
  const Json form = object("", {{"lines", texts("What to paste; none: nothing to set, or no keys for it."), required},
                                {"notes", texts("What to know of it."), required}});
  return object(
      "The settings in the forms that people paste.",
      {{"flags", form, required}, {"yaml", form, required}, {"bridge", form, required}, {"verl", form, required}});
}

}  // namespace

std::vector<Field> candidate_fields() {
  return {
      {"policy", choice("How optimizer state moves.", policy_choices()), required},
      {"chunk_numel", nullable(integer("Elements of a chunk (chunked, pipelined, tidal).")), required},
      {"chunk_size_mb", nullable(integer("MiB of moments in a chunk (windowed).")), required},
      {"fraction", nullable(number("Part of the state that moves (windowed, cpu-adam).")), required},
      {"slots", nullable(integer("Device slots (pipelined).")), required},
      {"cap_bytes", nullable(integer("Live device bytes stay below it (tidal); null: its default.")), required},
      {"live_cap_bytes", nullable(integer("Live device bytes stay below it (tidal), given or by default.")), required},
      {"flags", texts("Megatron's flags: the words of a command line."), required},
      {"forms", forms(), required},
      {"requires", text("Which Megatron takes them; empty: any."), required},
      {"deployable", boolean("Whether the Megatron in question takes them."), required},
      {"feasible", boolean("Whether it fits all budgets."), required},
      {"device_peak_bytes", bytes("Highest live device memory, allocated."), required},
      {"device_reserved_bytes", bytes("What the allocator reserves at most: compared with the budget."), required},
      {"device_reserved_likely_bytes", bytes("What it reserves most likely."), required},
      {"deciding_phase", text("The phase that decides device_reserved_bytes."), required},
      {"device_resume_bytes",
       bytes("device_reserved_bytes of the job when it is resumed with optimizer state; 0: not asked for."), required},
      {"device_between_steps_bytes", bytes("Live device memory between steps."), required},
      {"host_pinned_bytes_per_rank", bytes("Pinned host memory of a rank."), required},
      {"host_pinned_bytes_per_host", bytes("Pinned memory of a host."), required},
      {"host_pinned_bytes_per_socket", bytes("... beside the socket with most of the job's GPUs."), required},
      {"host_pageable_bytes_per_host", bytes("Pageable memory beside it at most: both together must fit a host."),
       required},
      {"host_deciding_phase", text("The phase in which they do: step, init, load or save."), required},
      {"optimizer_seconds", seconds("The optimizer's part of a step."), required},
      {"step_seconds", seconds("A whole steady step."), required},
      {"slowdown", number("Step over that of resident."), required},
      {"first_step_seconds", seconds("The first step, which makes state and pins memory."), required},
      {"second_step_seconds", seconds("The second."), required},
      {"first_steps_pinned_bytes", bytes("Host bytes that a rank pins in these two."), required},
      {"reason", text("Why it is the answer or is not."), required},
      {"device_terms", named_bytes("What is alive at the peak."), required}};
}

std::vector<Field> header_fields() {
  return {{"job", text("Name of the job."), required},
          {"model", text("Name of the model."), required},
          {"cluster", text("Name of the cluster."), required},
          {"gpus", integer("GPUs of the job."), required},
          {"gpus_per_host", integer("GPUs of a host."), required},
          {"device_budget_bytes", bytes("Device memory that a GPU may use."), required},
          {"host_budget_bytes", bytes("Memory of a host that the job may use, pinned and pageable."), required},
          {"compute_source", one_of_words("Where the time of forward and backward comes from.", {"job", "roofline"}),
           required},
          {"cluster_defaults", texts("Figures that the cluster leaves to their defaults."), required},
          ebb_version()};
}

std::vector<Field> phase_fields(bool with_terms) {
  std::vector<Field> fields = {
      {"name", text("The phase."), required},
      {"variant", text("Which of its kinds; may be empty."), required},
      {"later", boolean("A resume that the job does not begin with."), required},
      {"in_step", boolean("Part of a steady step."), required},
      {"seconds", seconds("How long it takes."), required},
      {"exposed_seconds", seconds("What the step waits for in it."), required},
      {"stored_bytes", bytes("Written to a checkpoint or read from one."), required},
      {"storage_known", boolean("Whether the cluster says how fast that is."), required},
      {"rank", integer("The rank with the highest peak."), required},
      {"device_peak_bytes", bytes("Highest live device memory, allocated."), required},
      {"device_reserved_likely_bytes", bytes("What the allocator reserves most likely."), required},
      {"device_reserved_bytes", bytes("What the decision goes by."), required},
      {"device_upper_bytes", bytes("device_peak_bytes and all of uncertainty."), required},
      {"uncertainty", named_bytes("What makes the difference."), required},
      {"device_allocated_after_bytes", bytes("Live when the phase ends."), required},
      {"device_reserved_after_bytes", bytes("Reserved when the phase ends."), required},
      {"host_pinned_bytes", bytes("Pinned memory of the rank."), required},
      {"host_pageable_bytes", bytes("Pageable memory of the rank."), required},
      {"host_pinned_bytes_per_host", bytes("Pinned memory of its host."), required},
      {"host_pageable_bytes_per_host", bytes("Pageable memory of its host."), required},
      {"host_pinned_bytes_per_node", list("... on each socket.", bytes("")), required}};
  if (with_terms)
    fields.push_back(
        {"terms",
         list("What is alive at the peak.", object("", {{"name", text("What."), required},
                                                        {"bytes", bytes("How much."), required},
                                                        {"origin", text("Where that comes from."), required}})),
         required});
  return fields;
}

Json plan_answer() {
  return answer(
      "plan", "ebb plan: what to use, and what else there is.",
      joined({{"recommendation", nullable(object("The answer; null: nothing fits.", candidate_fields())), required},
              {"candidates", list("All that were looked at, the fastest first.", object("", candidate_fields())),
               required},
              {"objective", one_of_words("What the recommended one is best in.", {"step", "memory", "balanced"}),
               required},
              {"worst_case", texts("--robust: what was assumed at its worst; empty without."), required},
              {"front",
               list("Those that no other beats in both device memory and step time, by memory.",
                    object("", candidate_fields())),
               required},
              {"shortfall", text("Nothing fits: what is missing.")},
              {"cures", texts("Nothing fits: what would help.")}},
             header_fields()));
}

Json simulate_answer() {
  return answer(
      "simulate", "ebb simulate: one policy.",
      joined(joined(candidate_fields(),
                    {{"phases", list("Its life, phase by phase.", object("", phase_fields(false))), required},
                     {"worst_case", texts("--robust: what was assumed at its worst; empty without."), required},
                     {"host_limits", texts("What stands against pinning that much."), required}}),
             header_fields()));
}

Json layout_answer() {
  return answer(
      "layout", "ebb layout: one rank's optimizer.",
      joined(
          {{"rank", integer("Global rank."), required},
           {"coordinates", text("Its place in the parallel sizes."), required},
           {"owned_numel", integer("Elements that its optimizer owns."), required},
           {"largest_shard_numel", integer("Elements of its largest shard."), required},
           {"shards",
            list("In optimizer order.", object("", {{"name", text("The parameter's."), required},
                                                    {"numel", integer("Elements."), required},
                                                    {"bucket", integer("Into buckets."), required},
                                                    {"group", integer("Parameter group: 0 decayed, 1 not."), required},
                                                    {"optimizer", integer("Of a chain: 0 dense, 1 expert."), required},
                                                    {"offset", integer("In the parameter."), required}})),
            required},
           {"buckets",
            list("Gradient buckets.", object("", {{"start", integer("First element."), required},
                                                  {"numel", integer("Elements, padded."), required},
                                                  {"group", integer("0 dense, 1 expert."), required},
                                                  {"buffer", integer("Which buffer."), required},
                                                  {"unpadded_numel", integer("Elements."), required}})),
            required},
           {"chunks",
            nullable(list("Where a policy with chunks was named.",
                          object("", {{"numel", integer("Elements."), required},
                                      {"shards", list("Into shards.", integer("")), required}}))),
            required}},
          header_fields()));
}

Json life_answer() {
  return answer("life", "ebb simulate --life: every part of the job's life.",
                {{"job", text("Name of the job."), required},
                 {"policy", text("How optimizer state moves."), required},
                 {"cluster", text("Name of the cluster."), required},
                 {"storage_known", boolean("Whether the cluster says how fast checkpoints are written."), required},
                 {"parts",
                  list("By rank, then part.",
                       object("", {{"rank", integer("Global rank."), required},
                                   {"part", names<LifePart>("Which part.", kPartCount), required},
                                   {"duration_seconds", seconds("How long it takes."), required},
                                   {"live_peak_bytes", bytes("Highest live device memory."), required},
                                   {"stored_bytes", bytes("Into a checkpoint or out of one."), required}})),
                  required},
                 ebb_version()});
}

Json plan_times_answer() {
  return answer("plan-times", "ebb simulate --plan: a plan file on a cluster.",
                {{"job", text("Name of the job."), required},
                 {"plan_file", text("The plan."), required},
                 {"cluster", text("Name of the cluster."), required},
                 {"ranks",
                  list("Ascending.", object("", {{"rank", integer("Global rank."), required},
                                                 {"step_seconds", seconds("The step."), required},
                                                 {"optimizer_step_seconds", seconds("Its optimizer step."), required},
                                                 {"live_peak_bytes", bytes("Highest live device memory."), required},
                                                 {"pinned_bytes", bytes("Pinned host memory."), required},
                                                 {"pageable_bytes", bytes("Pageable host memory."), required}})),
                  required},
                 ebb_version()});
}

}  // namespace ebb::reports::schema
