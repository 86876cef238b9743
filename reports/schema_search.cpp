// Schemas of the answers to many searches at once: fit and sweep.
#include "reports/schema_parts.hpp"

namespace ebb::reports::schema {

Json fit_answer() {
  const Json point =
      object("", {{"value", integer("Of the goal; of memory in bytes."), required},
                  {"candidate",
                   nullable(object("What to use; where nothing fits, what needs least; null: the job is not valid.",
                                   candidate_fields())),
                   required},
                  {"obstacle", text("Why nothing fits; empty where something does."), required},
                  {"decides",
                   one_of_words("What stops the job there; empty where something fits.",
                                {"", "rule", "policy", "device-budget", "host-budget", "numa"}),
                   required}});
  const Json limit = object("", {{"offload", boolean("With every policy; false: with resident state only."), required},
                                 {"fits", nullable(point), required},
                                 {"breaks", nullable(point), required}});
  return answer(
      "fit", "ebb fit: how far a job can go, or with how little it would do.",
      joined(
          {{"goal",
            one_of_words("What was to be largest or least.",
                         {"sequence", "micro-batch", "layers", "gpus", "host-memory"}),
            required},
           {"largest", boolean("The most that fits was asked for, not the least."), required},
           {"own", integer("The job's own value; 0: it has none."), required},
           {"step", integer("Between values; 0: they have no common distance."), required},
           {"limits", list("`fits` is the last value that does, `breaks` the next, which does not.", limit), required},
           {"notes", texts("What to know of them."), required}},
          header_fields()));
}

Json sweep_answer() {
  const Json row = object(
      "",
      {{"values", texts("Of the keys, in their order."), required},
       {"fits", boolean("Whether anything does."), required},
       {"candidate",
        nullable(object("What to use; where nothing fits, what needs least; null: no valid job.", candidate_fields())),
        required},
       {"obstacle", text("Why nothing fits; empty where something does."), required}});
  return answer("sweep", "ebb sweep: one answer for every combination of values.",
                {{"job", text("As it was named."), required},
                 {"keys", texts("What was changed."), required},
                 {"rows", list("The last key changes fastest.", row), required},
                 ebb_version()});
}

}  // namespace ebb::reports::schema
