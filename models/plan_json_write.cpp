// Plans to JSON text. What each key means is said where the field is (plan.hpp).
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/errors.hpp"
#include "models/plan_json.hpp"
#include "models/plan_json_parts.hpp"
#include "models/precision_json.hpp"

namespace ebb {

using namespace json_parts;

namespace {

Json states_json(std::uint8_t states) {
  Json json = Json::array();
  for (const auto& [name, bit] : kStates)
    if ((states & bit) != 0) json.push_back(name);
  return json;
}

Json range_json(ElementRange range) { return {range.begin, range.end}; }

Json buffer_json(const Buffer& buffer) {
  Json json = {{"name", buffer.name}, {"memory", name_of(buffer.memory)}, {"bytes", buffer.bytes.value}};
  if (buffer.initial) json["initial"] = true;
  if (buffer.ends_with) json["ends_with"] = name_of(*buffer.ends_with);
  if (buffer.role != Role::other) json["role"] = name_of(buffer.role);
  if (buffer.states != 0) json["states"] = states_json(buffer.states);
  if (buffer.holds != ElementRange{}) json["holds"] = range_json(buffer.holds);
  if (!buffer.parameters.empty()) json["parameters"] = buffer.parameters;
  if (buffer.packed) json["packed"] = true;
  return json;
}

Json op_json(const Plan& plan, const Op& op) {
  const Op neutral;
  Json json = {{"kind", name_of(op.kind)}, {"phase", name_of(op.phase)}, {"stream", op.stream.index}};
  if (op.work != neutral.work) json["work"] = name_of(op.work);
  if (op.states != 0) json["states"] = states_json(op.states);
  if (op.expert) json["expert"] = true;
  if (op.host != neutral.host) json["host"] = name_of(op.host);
  if (op.chunk != neutral.chunk) json["chunk"] = op.chunk;
  if (op.calls != neutral.calls) json["calls"] = op.calls;
  if (op.members != neutral.members) json["members"] = op.members;
  if (op.stride != neutral.stride) json["stride"] = op.stride;
  if (op.domains != neutral.domains) json["domains"] = op.domains;
  for (const OpId dep : plan.deps_of(op)) json["deps"].push_back(dep.index);
  if (op.buffer.valid()) json["buffer"] = op.buffer.index;
  if (op.host_buffer.valid()) json["host_buffer"] = op.host_buffer.index;
  if (op.after.valid()) json["after"] = op.after.index;
  if (op.bytes != neutral.bytes) json["bytes"] = op.bytes.value;
  if (op.range.begin != 0 || op.range.end != 0) json["range"] = range_json(op.range);
  if (op.duration != neutral.duration) json["duration_ps"] = op.duration.value;
  return json;
}

Json parameter_json(const PlanParameter& parameter) {
  Json json = {{"name", parameter.name}, {"shape", parameter.shape}, {"at", parameter.at.value}};
  if (parameter.quantized) json["quantized"] = true;
  if (parameter.expert) json["expert"] = true;
  return json;
}

Json shard_json(const PlanShard& shard) {
  Json json = {{"name", shard.name}, {"numel", shard.numel.value}, {"at", shard.at.value}};
  if (shard.parameter != 0) json["parameter"] = shard.parameter;
  if (shard.offset.value != 0) json["offset"] = shard.offset.value;
  return json;
}

std::string plan_text(const Plan& plan) {
  std::string text = fmt::format("{{\n\"job\": {},\n", dump(plan.job));
  text += fmt::format("\"candidate\": {},\n", dump(candidate_json(plan.candidate)));
  text += fmt::format("\"rank\": {},\n", plan.rank);
  if (plan.part != LifePart::step) text += fmt::format("\"part\": {},\n", dump(Json(name_of(plan.part))));
  text += fmt::format("\"precision\": {},\n", dump(precision_json(plan.precision)));
  text += lines("buckets", plan.buckets,
                [](const PlanBucket& bucket) {
                  Json json = {{"range", {bucket.begin.value, bucket.end.value}}};
                  if (bucket.expert) json["expert"] = true;
                  if (bucket.quantized) json["quantized"] = true;
                  return json;
                }) +
          ",\n";
  if (!plan.parameters.empty()) text += lines("parameters", plan.parameters, parameter_json) + ",\n";
  text += lines("shards", plan.shards, shard_json) + ",\n";
  text += lines("streams", plan.streams,
                [](const Stream& stream) {
                  return Json{{"name", stream.name}, {"kind", name_of(stream.kind)}};
                }) +
          ",\n";
  text += lines("buffers", plan.buffers, buffer_json) + ",\n";
  text += lines("ops", plan.ops, [&](const Op& op) { return op_json(plan, op); });
  return text + "\n}";
}

}  // namespace

std::string to_json(std::span<const Plan> plans) {
  EBB_ASSERT(!plans.empty());
  std::string text = fmt::format("{{\n\"format\": \"ebb-plan\",\n\"version\": {},\n\"ranks\": [", kPlanJsonVersion);
  for (std::size_t i = 0; i < plans.size(); ++i) text += (i == 0 ? "\n" : ",\n") + plan_text(plans[i]);
  return text + "]\n}\n";
}

}  // namespace ebb
