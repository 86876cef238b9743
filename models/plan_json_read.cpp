// Plans from JSON text: as strict as one document can be.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/plan_json.hpp"
#include "models/plan_json_parts.hpp"
#include "models/precision_json.hpp"

namespace ebb {

using namespace json_parts;

namespace {

std::uint8_t read_states(const JsonValue& states) {
  std::uint8_t bits = 0;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const auto* known = std::find_if(std::begin(kStates), std::end(kStates),
                                     [&](const auto& state) { return state.first == states[i].text(); });
    if (known == std::end(kStates)) states[i].reject("unknown state");
    bits |= known->second;
  }
  return bits;
}

ElementRange read_range(const JsonValue& range) {
  if (range.size() != 2) range.reject("expected [begin, end]");
  ElementRange out;
  out.begin = range[0].integer(0, kMost);
  out.end = range[1].integer(out.begin, kMost);
  return out;
}

Op read_op(const JsonValue& json, std::size_t self, std::size_t ops, Plan& plan) {
  json.require_keys({"kind", "phase", "stream", "work", "states", "chunk", "calls", "members", "stride", "domains",
                     "deps", "host", "expert", "buffer", "host_buffer", "after", "bytes", "range", "duration_ps"});
  Op op;
  op.kind = json.at("kind").one_of<OpKind>(kOpKinds);
  op.phase = json.at("phase").one_of<Phase>(kPhaseCount);
  op.stream = {json.at("stream").index(plan.streams.size())};
  if (json.has("work")) op.work = json.at("work").one_of<Work>(kWorks);
  if (json.has("states")) op.states = read_states(json.at("states"));
  if (json.has("expert")) op.expert = json.at("expert").boolean();
  read_integer(json, "chunk", op.chunk, 0, kMost32);
  read_integer(json, "calls", op.calls, 0, kMost32);
  read_integer(json, "members", op.members, 1, kMost32);
  read_integer(json, "stride", op.stride, 1, kMost32);
  read_integer(json, "domains", op.domains, 1, kMost32);
  if (json.has("host")) op.host = json.at("host").one_of<Memory>(kMemories);
  if (json.has("deps")) {
    const JsonValue deps = json.at("deps");
    op.deps_begin = static_cast<std::uint32_t>(plan.deps.size());
    op.deps_count = static_cast<std::uint32_t>(deps.size());
    for (std::size_t i = 0; i < deps.size(); ++i) {
      if (self == 0) deps[i].reject("the first op cannot depend on anything");
      plan.deps.push_back({deps[i].index(self)});  // only on earlier ops: the order is topological
    }
  }
  if (json.has("buffer")) op.buffer = {json.at("buffer").index(plan.buffers.size())};
  if (json.has("host_buffer")) op.host_buffer = {json.at("host_buffer").index(plan.buffers.size())};
  if (json.has("after")) op.after = {json.at("after").index(ops)};
  read_integer(json, "bytes", op.bytes.value, 0, kMost);
  if (json.has("range")) op.range = read_range(json.at("range"));
  read_integer(json, "duration_ps", op.duration.value, 0, kMost);
  return op;
}

void read_buckets(const JsonValue& buckets, Plan& plan) {
  std::int64_t end = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    buckets[i].require_keys({"range", "expert", "quantized"});
    const ElementRange range = read_range(buckets[i].at("range"));
    if (range.begin != end) buckets[i].reject("does not begin where the bucket before it ends");
    end = range.end;
    const bool expert = buckets[i].has("expert") && buckets[i].at("expert").boolean();
    const bool quantized = buckets[i].has("quantized") && buckets[i].at("quantized").boolean();
    plan.buckets.push_back({{range.begin}, {range.end}, expert, quantized});
  }
}

void read_parameters(const JsonValue& parameters, Plan& plan) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const JsonValue json = parameters[i];
    json.require_keys({"name", "shape", "at", "quantized", "expert"});
    PlanParameter parameter{.name = json.at("name").text(), .shape = {}, .at = {json.at("at").integer(0, kMost)}};
    const JsonValue shape = json.at("shape");
    std::int64_t numel = 1;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::int64_t extent = shape[d].integer(0, kMost);
      if (__builtin_mul_overflow(numel, extent, &numel)) shape.reject("more elements than can be counted");
      parameter.shape.push_back(extent);
    }
    if (i > 0 && parameter.at < plan.parameters.back().at) json.reject("does not lie behind the parameter before it");
    parameter.quantized = json.has("quantized") && json.at("quantized").boolean();
    parameter.expert = json.has("expert") && json.at("expert").boolean();
    plan.parameters.push_back(std::move(parameter));
  }
}

void read_shards(const JsonValue& shards, Plan& plan) {
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const JsonValue json = shards[i];
    json.require_keys({"name", "numel", "at", "parameter", "offset"});
    PlanShard shard{.name = json.at("name").text(),
                    .numel = {json.at("numel").integer(0, kMost)},
                    .at = {json.at("at").integer(0, kMost)}};
    if (json.has("parameter"))
      shard.parameter = static_cast<std::uint32_t>(json.at("parameter").index(plan.parameters.size()));
    read_integer(json, "offset", shard.offset.value, 0, kMost);
    plan.shards.push_back(std::move(shard));
  }
}

void read_tables(const JsonValue& document, Plan& plan) {
  read_buckets(document.at("buckets"), plan);
  if (document.has("parameters")) read_parameters(document.at("parameters"), plan);
  read_shards(document.at("shards"), plan);
  const JsonValue streams = document.at("streams");
  for (std::size_t i = 0; i < streams.size(); ++i) {
    streams[i].require_keys({"name", "kind"});
    plan.streams.push_back({streams[i].at("name").text(), streams[i].at("kind").one_of<StreamKind>(kStreamKinds)});
  }
  const JsonValue buffers = document.at("buffers");
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const JsonValue json = buffers[i];
    json.require_keys(
        {"name", "memory", "bytes", "initial", "ends_with", "role", "states", "holds", "parameters", "packed"});
    Buffer buffer{.name = json.at("name").text(),
                  .memory = json.at("memory").one_of<Memory>(kMemories),
                  .bytes = {json.at("bytes").integer(0, kMost)},
                  .initial = json.has("initial") && json.at("initial").boolean()};
    if (json.has("ends_with")) buffer.ends_with = json.at("ends_with").one_of<Phase>(kPhaseCount);
    if (json.has("role")) buffer.role = json.at("role").one_of<Role>(kRoles);
    if (json.has("states")) buffer.states = read_states(json.at("states"));
    if (json.has("holds")) buffer.holds = read_range(json.at("holds"));
    if (json.has("parameters")) {
      const JsonValue parameters = json.at("parameters");
      for (std::size_t p = 0; p < parameters.size(); ++p)
        buffer.parameters.push_back(static_cast<std::uint32_t>(parameters[p].index(plan.parameters.size())));
    }
    if (json.has("packed")) buffer.packed = json.at("packed").boolean();
    plan.buffers.push_back(std::move(buffer));
  }
}

Plan read_plan(const JsonValue& document) {
  document.require_keys({"job", "candidate", "rank", "part", "precision", "buckets", "parameters", "shards", "streams",
                         "buffers", "ops"});
  Plan plan;
  plan.job = document.at("job").text();
  plan.candidate = read_candidate(document.at("candidate"));
  plan.rank = document.at("rank").integer(0, kMost32);
  if (document.has("part")) plan.part = document.at("part").one_of<LifePart>(kPartCount);
  plan.precision = read_precision(document.at("precision"));
  read_tables(document, plan);
  const JsonValue ops = document.at("ops");
  plan.ops.reserve(ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) plan.ops.push_back(read_op(ops[i], i, ops.size(), plan));
  return plan;
}

}  // namespace

std::vector<Plan> plans_from_json(std::string_view text, const std::string& file) {
  const Json json = parse_json(text, file);
  const JsonValue document(json, "", file);
  check_header(document, "ebb-plan", kPlanJsonVersion);
  document.require_keys({"format", "version", "ranks"});
  const JsonValue ranks = document.at("ranks");
  if (ranks.size() == 0) ranks.reject("no plan in it");
  std::vector<Plan> plans;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    plans.push_back(read_plan(ranks[i]));
    if (i > 0 && std::pair(plans[i].rank, plans[i].part) <= std::pair(plans[i - 1].rank, plans[i - 1].part))
      ranks[i].reject("ranks, and the parts of each, are not ascending");
  }
  return plans;
}

}  // namespace ebb
