#include "models/plan_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "models/job_words.hpp"
#include "models/json_fields.hpp"

namespace ebb {

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMost32 = std::numeric_limits<std::uint32_t>::max();

constexpr int kStreamKinds = static_cast<int>(StreamKind::comm) + 1;
constexpr int kOpKinds = static_cast<int>(OpKind::host_wait) + 1;
constexpr int kWorks = static_cast<int>(Work::pin) + 1;
constexpr int kRoles = static_cast<int>(Role::staging) + 1;
constexpr int kMemories = static_cast<int>(Memory::pageable) + 1;

constexpr std::pair<const char*, std::uint8_t> kStates[] = {
    {"exp_avg", kExpAvg}, {"exp_avg_sq", kExpAvgSq}, {"master", kMaster}, {"grads", kGrads}, {"params", kParams}};

/// `"key": [` one element a line `]`.
template <class Items, class ToJson>
std::string lines(const char* key, const Items& items, const ToJson& to) {
  std::string text = fmt::format("\"{}\": [", key);
  for (std::size_t i = 0; i < items.size(); ++i) text += (i == 0 ? "\n" : ",\n") + dump(to(items[i]));
  return text + (items.empty() ? "]" : "\n]");
}

Json candidate_json(const Candidate& candidate) {
  return {{"policy", name_of(candidate.policy)},
          {"chunk_numel", candidate.chunk_numel.value},
          {"chunk_size_mb", candidate.chunk_size_mb},
          {"fraction", candidate.fraction},
          {"slots", candidate.slots}};
}

Json states_json(std::uint8_t states) {
  Json json = Json::array();
  for (const auto& [name, bit] : kStates)
    if ((states & bit) != 0) json.push_back(name);
  return json;
}

Json range_json(ElementRange range) { return {range.begin, range.end}; }

template <class Enum, std::size_t N>
std::string_view word_of(const Choice<Enum> (&choices)[N], Enum value) {
  for (const Choice<Enum>& choice : choices)
    if (choice.second == value) return choice.first;
  return "";
}

/// What decides the bytes of state, gradients and parameters; what else a recipe keeps is in the buffers.
Json precision_json(const Precision& precision) {
  Json json = {{"params", name_of(precision.params)},
               {"grads", name_of(precision.grads)},
               {"exp_avg", name_of(precision.exp_avg)},
               {"exp_avg_sq", name_of(precision.exp_avg_sq)},
               {"master", name_of(precision.master)}};
  if (precision.precision_aware) json["precision_aware"] = *precision.precision_aware;
  if (precision.remainders) json["remainders"] = *precision.remainders;
  if (precision.fp8 != Fp8Recipe::none) json["fp8"] = word_of(kFp8Recipes, precision.fp8);
  if (precision.fp8_param_gather) json["fp8_param_gather"] = true;
  if (precision.fp4 != Fp4Recipe::none) json["fp4"] = word_of(kFp4Recipes, precision.fp4);
  if (precision.fp4_param_gather) json["fp4_param_gather"] = true;
  return json;
}

Json buffer_json(const Buffer& buffer) {
  Json json = {{"name", buffer.name}, {"memory", name_of(buffer.memory)}, {"bytes", buffer.bytes.value}};
  if (buffer.initial) json["initial"] = true;
  if (buffer.ends_with) json["ends_with"] = name_of(*buffer.ends_with);
  if (buffer.role != Role::other) json["role"] = name_of(buffer.role);
  if (buffer.states != 0) json["states"] = states_json(buffer.states);
  if (buffer.holds != ElementRange{}) json["holds"] = range_json(buffer.holds);
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
  if (op.after.valid()) json["after"] = op.after.index;
  if (op.bytes != neutral.bytes) json["bytes"] = op.bytes.value;
  if (op.range.begin != 0 || op.range.end != 0) json["range"] = range_json(op.range);
  if (op.duration != neutral.duration) json["duration_ps"] = op.duration.value;
  return json;
}

void check_header(const JsonValue& document, const char* format, int version) {
  if (document.at("format").text() != format) document.at("format").reject(fmt::format("this is not an {}", format));
  const std::int64_t found = document.at("version").integer(0, kMost);
  if (found != version)
    document.at("version").reject(fmt::format("version {} is not read, only {}", found, version),
                                  "write it again with this ebb");
}

Candidate read_candidate(const JsonValue& json) {
  json.require_keys({"policy", "chunk_numel", "chunk_size_mb", "fraction", "slots"});
  Candidate candidate;
  candidate.policy = json.at("policy").one_of<Policy>(static_cast<int>(kPolicies.size()));
  candidate.chunk_numel = {json.at("chunk_numel").integer(0, kMost)};
  candidate.chunk_size_mb = json.at("chunk_size_mb").integer(0, kMost >> 20);
  candidate.fraction = json.at("fraction").number();
  if (!(candidate.fraction > 0 && candidate.fraction <= 1)) json.at("fraction").reject("not in (0, 1]");
  candidate.slots = static_cast<int>(json.at("slots").integer(0, 1 << 20));
  return candidate;
}

/// Optional integer fields keep their neutral value when absent.
template <class Int>
void read_integer(const JsonValue& json, const char* key, Int& out, std::int64_t least, std::int64_t most) {
  if (json.has(key)) out = static_cast<Int>(json.at(key).integer(least, most));
}

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
                     "deps", "host", "expert", "buffer", "after", "bytes", "range", "duration_ps"});
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
  if (json.has("after")) op.after = {json.at("after").index(ops)};
  read_integer(json, "bytes", op.bytes.value, 0, kMost);
  if (json.has("range")) op.range = read_range(json.at("range"));
  read_integer(json, "duration_ps", op.duration.value, 0, kMost);
  return op;
}

template <class Enum, std::size_t N>
void read_choice(const JsonValue& json, const char* key, const Choice<Enum> (&choices)[N], Enum& out) {
  if (!json.has(key)) return;
  const std::string word = json.at(key).text();
  const auto* found = std::find_if(std::begin(choices), std::end(choices),
                                   [&](const Choice<Enum>& choice) { return choice.first == word; });
  if (found == std::end(choices)) json.at(key).reject("unknown value");
  out = found->second;
}

Precision read_precision(const JsonValue& json) {
  json.require_keys({"params", "grads", "exp_avg", "exp_avg_sq", "master", "precision_aware", "remainders", "fp8",
                     "fp8_param_gather", "fp4", "fp4_param_gather"});
  Precision precision;
  read_choice(json, "params", kMomentTypes, precision.params);
  read_choice(json, "grads", kMomentTypes, precision.grads);
  read_choice(json, "exp_avg", kMomentTypes, precision.exp_avg);
  read_choice(json, "exp_avg_sq", kMomentTypes, precision.exp_avg_sq);
  read_choice(json, "master", kMomentTypes, precision.master);
  read_choice(json, "fp8", kFp8Recipes, precision.fp8);
  read_choice(json, "fp4", kFp4Recipes, precision.fp4);
  if (json.has("precision_aware")) precision.precision_aware = json.at("precision_aware").boolean();
  if (json.has("remainders")) precision.remainders = json.at("remainders").boolean();
  if (json.has("fp8_param_gather")) precision.fp8_param_gather = json.at("fp8_param_gather").boolean();
  if (json.has("fp4_param_gather")) precision.fp4_param_gather = json.at("fp4_param_gather").boolean();
  return precision;
}

void read_buckets(const JsonValue& buckets, Plan& plan) {
  std::int64_t end = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    buckets[i].require_keys({"range", "expert"});
    const ElementRange range = read_range(buckets[i].at("range"));
    if (range.begin != end) buckets[i].reject("does not begin where the bucket before it ends");
    end = range.end;
    const bool expert = buckets[i].has("expert") && buckets[i].at("expert").boolean();
    plan.buckets.push_back({{range.begin}, {range.end}, expert});
  }
}

void read_tables(const JsonValue& document, Plan& plan) {
  read_buckets(document.at("buckets"), plan);
  const JsonValue shards = document.at("shards");
  for (std::size_t i = 0; i < shards.size(); ++i) {
    shards[i].require_keys({"name", "numel", "at"});
    plan.shards.push_back({.name = shards[i].at("name").text(),
                           .numel = {shards[i].at("numel").integer(0, kMost)},
                           .at = {shards[i].at("at").integer(0, kMost)}});
  }
  const JsonValue streams = document.at("streams");
  for (std::size_t i = 0; i < streams.size(); ++i) {
    streams[i].require_keys({"name", "kind"});
    plan.streams.push_back({streams[i].at("name").text(), streams[i].at("kind").one_of<StreamKind>(kStreamKinds)});
  }
  const JsonValue buffers = document.at("buffers");
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const JsonValue json = buffers[i];
    json.require_keys({"name", "memory", "bytes", "initial", "ends_with", "role", "states", "holds", "packed"});
    Buffer buffer{.name = json.at("name").text(),
                  .memory = json.at("memory").one_of<Memory>(kMemories),
                  .bytes = {json.at("bytes").integer(0, kMost)},
                  .initial = json.has("initial") && json.at("initial").boolean()};
    if (json.has("ends_with")) buffer.ends_with = json.at("ends_with").one_of<Phase>(kPhaseCount);
    if (json.has("role")) buffer.role = json.at("role").one_of<Role>(kRoles);
    if (json.has("states")) buffer.states = read_states(json.at("states"));
    if (json.has("holds")) buffer.holds = read_range(json.at("holds"));
    if (json.has("packed")) buffer.packed = json.at("packed").boolean();
    plan.buffers.push_back(std::move(buffer));
  }
}

std::vector<Ticks> read_ticks(const JsonValue& list) {
  std::vector<Ticks> ticks(list.size());
  for (std::size_t i = 0; i < ticks.size(); ++i) ticks[i] = {list[i].integer(0, kMost)};
  return ticks;
}

}  // namespace

std::string_view name_of(TimelineSource source) {
  return source == TimelineSource::predicted ? "predicted" : "measured";
}

namespace {

std::string plan_text(const Plan& plan) {
  std::string text = fmt::format("{{\n\"job\": {},\n", dump(plan.job));
  text += fmt::format("\"candidate\": {},\n", dump(candidate_json(plan.candidate)));
  text += fmt::format("\"rank\": {},\n", plan.rank);
  text += fmt::format("\"precision\": {},\n", dump(precision_json(plan.precision)));
  text += lines("buckets", plan.buckets,
                [](const PlanBucket& bucket) {
                  Json json = {{"range", {bucket.begin.value, bucket.end.value}}};
                  if (bucket.expert) json["expert"] = true;
                  return json;
                }) +
          ",\n";
  text += lines("shards", plan.shards,
                [](const PlanShard& shard) {
                  return Json{{"name", shard.name}, {"numel", shard.numel.value}, {"at", shard.at.value}};
                }) +
          ",\n";
  text += lines("streams", plan.streams,
                [](const Stream& stream) {
                  return Json{{"name", stream.name}, {"kind", name_of(stream.kind)}};
                }) +
          ",\n";
  text += lines("buffers", plan.buffers, buffer_json) + ",\n";
  text += lines("ops", plan.ops, [&](const Op& op) { return op_json(plan, op); });
  return text + "\n}";
}

Plan read_plan(const JsonValue& document) {
  document.require_keys({"job", "candidate", "rank", "precision", "buckets", "shards", "streams", "buffers", "ops"});
  Plan plan;
  plan.job = document.at("job").text();
  plan.candidate = read_candidate(document.at("candidate"));
  plan.rank = document.at("rank").integer(0, kMost32);
  plan.precision = read_precision(document.at("precision"));
  read_tables(document, plan);
  const JsonValue ops = document.at("ops");
  plan.ops.reserve(ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) plan.ops.push_back(read_op(ops[i], i, ops.size(), plan));
  return plan;
}

}  // namespace

std::string to_json(std::span<const Plan> plans) {
  EBB_ASSERT(!plans.empty());
  std::string text = fmt::format("{{\n\"format\": \"ebb-plan\",\n\"version\": {},\n\"ranks\": [", kPlanJsonVersion);
  for (std::size_t i = 0; i < plans.size(); ++i) text += (i == 0 ? "\n" : ",\n") + plan_text(plans[i]);
  return text + "]\n}\n";
}

std::string to_json(const Timeline& timeline) {
  const auto list = [](const std::vector<Ticks>& ticks) {
    std::string text = "[";
    for (std::size_t i = 0; i < ticks.size(); ++i) text += fmt::format("{}{}", i == 0 ? "" : ",", ticks[i].value);
    return text + "]";
  };
  return fmt::format(
      "{{\n\"format\": \"ebb-timeline\",\n\"version\": {},\n\"source\": \"{}\",\n\"start_ps\": {},\n"
      "\"end_ps\": {}\n}}\n",
      kTimelineJsonVersion, name_of(timeline.source), list(timeline.start), list(timeline.end));
}

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
    if (i > 0 && plans[i].rank <= plans[i - 1].rank) ranks[i].reject("ranks are not ascending");
  }
  return plans;
}

Timeline timeline_from_json(std::string_view text, const std::string& file) {
  const Json json = parse_json(text, file);
  const JsonValue document(json, "", file);
  check_header(document, "ebb-timeline", kTimelineJsonVersion);
  document.require_keys({"format", "version", "source", "start_ps", "end_ps"});
  Timeline timeline;
  timeline.source = document.at("source").one_of<TimelineSource>(2);
  timeline.start = read_ticks(document.at("start_ps"));
  timeline.end = read_ticks(document.at("end_ps"));
  if (timeline.start.size() != timeline.end.size()) document.reject("start_ps and end_ps differ in length");
  for (std::size_t i = 0; i < timeline.end.size(); ++i)
    if (timeline.end[i] < timeline.start[i]) document.reject(fmt::format("op {} ends before it starts", i));
  return timeline;
}

}  // namespace ebb
