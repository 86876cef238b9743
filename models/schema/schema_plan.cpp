// The schema of a plan file (models/plan_json_read.cpp reads it). What each key means is said at length in plan.hpp.
#include "models/job_words.hpp"
#include "models/plan_json.hpp"
#include "models/plan_json_parts.hpp"
#include "models/schema/schema_parts.hpp"

namespace ebb::schema {

namespace {

using json_parts::kMost32;

Json index_schema(std::string_view description) { return integer(description, 0, kMost32); }

Json range_schema(std::string_view description) {
  return fixed_list(description, {integer("Its first."), integer("Behind its last.")});
}

Json states_schema(std::string_view description) {
  std::vector<std::string_view> words;
  for (const auto& [word, bit] : json_parts::kStates) words.emplace_back(word);
  return list(description, one_of_words("", words));
}

Json precision_schema() {
  return object("The types that the policy works in.",
                {{"params", choice("Parameters.", kMomentTypes), required},
                 {"grads", choice("Gradients.", kMomentTypes), required},
                 {"exp_avg", choice("First moment.", kMomentTypes), required},
                 {"exp_avg_sq", choice("Second moment.", kMomentTypes), required},
                 {"master", choice("Master weights.", kMomentTypes), required},
                 {"precision_aware", boolean("Transformer Engine's optimizer keeps moments in these types.")},
                 {"remainders", boolean("Masters are the 16 bits that the parameter lacks.")},
                 {"fp8", choice("Recipe of FP8.", kFp8Recipes)},
                 {"fp8_param_gather", boolean("Parameters are kept in FP8.")},
                 {"fp4", choice("Recipe of FP4.", kFp4Recipes)},
                 {"fp4_param_gather", boolean("Parameters are kept in FP4.")}});
}

Json buckets_schema() {
  return list("All padded elements in gradient order, without gaps.",
              object("", {{"range", range_schema("Padded elements."), required},
                          {"expert", boolean("Of experts.")},
                          {"quantized", boolean("One byte an element.")}}));
}

Json parameters_schema() {
  return list("The parameters that the rank has in memory, ascending by place.",
              object("", {{"name", text("Unique in the whole model."), required},
                          {"shape", list("Of this rank's part, row-major.", integer("An extent.")), required},
                          {"at", integer("Its first padded element."), required},
                          {"quantized", boolean("Kept in FP8.")},
                          {"expert", boolean("Of an expert.")}}));
}

Json shards_schema() {
  return list("The rank's shards in optimizer order: its owned elements.",
              object("", {{"name", text("The parameter's."), required},
                          {"numel", integer("Elements."), required},
                          {"at", integer("Its first padded element."), required},
                          {"parameter", index_schema("Into parameters.")},
                          {"offset", integer("Its first element in the parameter.")}}));
}

Json buffers_schema() {
  return list(
      "Memory that ops use.",
      object("", {{"name", text("Unique in the plan."), required},
                  {"memory", names<Memory>("Where it lives.", json_parts::kMemories), required},
                  {"bytes", integer("Its size in bytes."), required},
                  {"initial", boolean("It is there before the first op.")},
                  {"ends_with", names<Phase>("Not alive when this phase ends.", kPhaseCount)},
                  {"role", names<Role>("What its bytes mean.", json_parts::kRoles)},
                  {"states", states_schema("Which states it holds.")},
                  {"holds", range_schema("... of these owned elements.")},
                  {"parameters", list("Whose largest values it holds: into parameters.", index_schema("A parameter."))},
                  {"packed", boolean("Its states lie one after another without a gap.")}}));
}

Json ops_schema() {
  return list("In an order in which each may run after those before it.",
              object("", {{"kind", names<OpKind>("What it is.", json_parts::kOpKinds), required},
                          {"phase", names<Phase>("Which phase it belongs to.", kPhaseCount), required},
                          {"stream", index_schema("Into streams: it follows what is before it there."), required},
                          {"work", names<Work>("What it does.", json_parts::kWorks)},
                          {"states", states_schema("Which states it moves or updates.")},
                          {"expert", boolean("A collective of experts' parameters or gradients.")},
                          {"host", names<Memory>("The host side of a copy.", json_parts::kMemories)},
                          {"chunk", index_schema("Which chunk it works on.")},
                          {"calls", index_schema("Pieces of a copy, launches of a kernel, repetitions (1).")},
                          {"members", integer("Ranks of a collective (1).", 1, kMost32)},
                          {"stride", integer("... so many global ranks apart (1).", 1, kMost32)},
                          {"domains", integer("NVLink domains they are spread over (1).", 1, kMost32)},
                          {"deps", list("Earlier ops that it waits for.", index_schema("An op."))},
                          {"buffer", index_schema("Into buffers: allocated, released, read or written.")},
                          {"host_buffer", index_schema("Into buffers: the host side, where it is a checkpoint's.")},
                          {"after", index_schema("A release: the storage comes back when this op has ended as well.")},
                          {"bytes", integer("Bytes that it moves.")},
                          {"range", range_schema("Owned elements.")},
                          {"duration_ps", integer("Picoseconds, where the plan says how long it takes.")}}));
}

Json rank_schema() {
  return object(
      "One plan of one rank.",
      {{"job", text("Name of the job."), required},
       {"candidate", candidate_schema(), required},
       {"rank", integer("Global rank.", 0, kMost32), required},
       {"part", names<LifePart>("Which part of the job's life (step).", kPartCount)},
       {"precision", precision_schema(), required},
       {"buckets", buckets_schema(), required},
       {"parameters", parameters_schema()},
       {"shards", shards_schema(), required},
       {"streams",
        list("What runs beside each other.",
             object("", {{"name", text("Unique in the plan."), required},
                         {"kind", names<StreamKind>("What runs there.", json_parts::kStreamKinds), required}})),
        required},
       {"buffers", buffers_schema(), required},
       {"ops", ops_schema(), required}});
}

}  // namespace

Json candidate_schema() {
  return object("A policy and its parameters; those of other policies have neutral values.",
                {{"policy", choice("How optimizer state moves.", policy_choices()), required},
                 {"chunk_numel", integer("chunked, pipelined, tidal: elements of a chunk."), required},
                 {"chunk_size_mb", integer("windowed: MiB of moments in a chunk.", 0, kMost >> 20), required},
                 {"fraction", number("windowed, cpu-adam: part of the state that moves, 0 < f <= 1."), required},
                 {"slots", integer("pipelined: device slots.", 0, 1 << 20), required},
                 {"cap", integer("tidal: live device bytes stay below it; left out where it has its default.")}});
}

std::string plan_document() {
  Json ranks = list("Ascending by rank, then by part of life.", rank_schema());
  ranks["minItems"] = 1;
  return document("plan", kPlanJsonVersion, "Plan of Ebb",
                  object("What the ranks of a host do, as ebb writes it (-o) and ebb-replay runs it.",
                         {{"format", constant("ebb-plan"), required},
                          {"version", constant(kPlanJsonVersion), required},
                          {"ranks", ranks, required}}));
}

}  // namespace ebb::schema
