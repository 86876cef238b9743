#include "models/timeline_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/errors.hpp"
#include "models/live_meter.hpp"
#include "models/plan_json.hpp"
#include "models/plan_json_parts.hpp"

namespace ebb {

using namespace json_parts;

namespace {

/// 46 days, as to_ticks() has it: sums of two stay far below what an integer holds.
constexpr std::int64_t kMostTicks = 4'000'000 * kTicksPerSecond;

struct RunFigure {
  const char* key;
  std::optional<Bytes> MemoryFigures::*value;
};
constexpr RunFigure kRunFigures[] = {{"torch_allocated_peak", &MemoryFigures::torch_allocated_peak},
                                     {"torch_reserved_peak", &MemoryFigures::torch_reserved_peak},
                                     {"driver_peak", &MemoryFigures::driver_peak},
                                     {"instruments", &MemoryFigures::instruments}};

Json ticks_json(const std::vector<Ticks>& ticks) {
  Json json = Json::array();
  for (const Ticks t : ticks) json.push_back(t.value);
  return json;
}

Json memory_json(const MemoryFigures& memory) {
  Json json = {{"live_peak", memory.live_peak.value}};
  Json& phases = json["live_by_phase"] = Json::array();
  for (const auto& [phase, bytes] : memory.live_by_phase)
    phases.push_back({{"phase", name_of(phase)}, {"bytes", bytes.value}});
  json["pinned"] = memory.pinned.value;
  json["pageable"] = memory.pageable.value;
  for (const RunFigure& figure : kRunFigures)
    if (const std::optional<Bytes>& bytes = memory.*figure.value) json[figure.key] = bytes->value;
  return json;
}

Json span_json(const OpSpan& op) {
  const OpSpan neutral;
  Json json = {{"kind", name_of(op.kind)}, {"phase", name_of(op.phase)}, {"stream", name_of(op.stream)}};
  if (op.work != neutral.work) json["work"] = name_of(op.work);
  if (op.chunk != neutral.chunk) json["chunk"] = op.chunk;
  if (op.calls != neutral.calls) json["calls"] = op.calls;
  if (op.members != neutral.members) json["members"] = op.members;
  if (op.domains != neutral.domains) json["domains"] = op.domains;
  if (op.bytes != neutral.bytes) json["bytes"] = op.bytes.value;
  json["start_ps"] = op.start.value;
  json["end_ps"] = op.end.value;
  return json;
}

std::string rank_text(const RankTimeline& rank) {
  EBB_ASSERT(rank.steps.size() == rank.updates.size());
  std::string text = fmt::format("{{\n\"rank\": {},\n", rank.rank);
  text += fmt::format("\"steps_ps\": {},\n", dump(ticks_json(rank.steps)));
  text += fmt::format("\"updates_ps\": {},\n", dump(ticks_json(rank.updates)));
  text += fmt::format("\"memory\": {},\n", dump(memory_json(rank.memory)));
  return text + lines("ops", rank.ops, span_json) + "\n}";
}

OpSpan read_span(const JsonValue& json) {
  json.require_keys(
      {"kind", "phase", "stream", "work", "chunk", "calls", "members", "domains", "bytes", "start_ps", "end_ps"});
  OpSpan op;
  op.kind = json.at("kind").one_of<OpKind>(kOpKinds);
  op.phase = json.at("phase").one_of<Phase>(kPhaseCount);
  op.stream = json.at("stream").one_of<StreamKind>(kStreamKinds);
  if (json.has("work")) op.work = json.at("work").one_of<Work>(kWorks);
  read_integer(json, "chunk", op.chunk, 0, kMost32);
  read_integer(json, "calls", op.calls, 0, kMost32);
  read_integer(json, "members", op.members, 1, kMost32);
  read_integer(json, "domains", op.domains, 1, kMost32);
  read_integer(json, "bytes", op.bytes.value, 0, kMost);
  op.start = {json.at("start_ps").integer(0, kMostTicks)};
  op.end = {json.at("end_ps").integer(0, kMostTicks)};
  if (op.end < op.start) json.at("end_ps").reject("the op ends before it starts");
  return op;
}

std::vector<Ticks> read_ticks(const JsonValue& list) {
  std::vector<Ticks> ticks(list.size());
  for (std::size_t i = 0; i < ticks.size(); ++i) ticks[i] = {list[i].integer(0, kMostTicks)};
  return ticks;
}

MemoryFigures read_memory(const JsonValue& json) {
  std::vector<std::string_view> keys = {"live_peak", "live_by_phase", "pinned", "pageable"};
  for (const RunFigure& figure : kRunFigures) keys.emplace_back(figure.key);
  json.require_keys(keys);
  MemoryFigures memory;
  memory.live_peak = {json.at("live_peak").integer(0, kMost)};
  const JsonValue phases = json.at("live_by_phase");
  for (std::size_t i = 0; i < phases.size(); ++i) {
    phases[i].require_keys({"phase", "bytes"});
    const Phase phase = phases[i].at("phase").one_of<Phase>(kPhaseCount);
    for (const auto& before : memory.live_by_phase)
      if (before.first == phase) phases[i].at("phase").reject("this phase is there already");
    memory.live_by_phase.emplace_back(phase, Bytes{phases[i].at("bytes").integer(0, kMost)});
  }
  memory.pinned = {json.at("pinned").integer(0, kMost)};
  memory.pageable = {json.at("pageable").integer(0, kMost)};
  for (const RunFigure& figure : kRunFigures)
    if (json.has(figure.key)) memory.*figure.value = Bytes{json.at(figure.key).integer(0, kMost)};
  return memory;
}

RankTimeline read_rank(const JsonValue& json, TimelineSource source) {
  json.require_keys({"rank", "steps_ps", "updates_ps", "memory", "ops"});
  RankTimeline rank;
  rank.rank = json.at("rank").integer(0, kMost32);
  rank.steps = read_ticks(json.at("steps_ps"));
  if (rank.steps.empty()) json.at("steps_ps").reject("no step in it");
  if (source == TimelineSource::predicted && rank.steps.size() != 1)
    json.at("steps_ps").reject("a prediction has one step");
  rank.updates = read_ticks(json.at("updates_ps"));
  if (rank.updates.size() != rank.steps.size()) json.at("updates_ps").reject("not as many as steps_ps");
  rank.memory = read_memory(json.at("memory"));
  const JsonValue ops = json.at("ops");
  rank.ops.reserve(ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) rank.ops.push_back(read_span(ops[i]));
  return rank;
}

std::string read_digest(const JsonValue& json) {
  const std::string& digest = json.text();
  if (digest.size() != 16 || digest.find_first_not_of("0123456789abcdef") != std::string::npos)
    json.reject("expected 16 hexadecimal digits");
  return digest;
}

std::vector<std::pair<std::string, std::string>> read_provenance(const JsonValue& list) {
  std::vector<std::pair<std::string, std::string>> provenance;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].size() != 2) list[i].reject("expected [name, value]");
    provenance.emplace_back(list[i][0].text(), list[i][1].text());
  }
  return provenance;
}

/// FNV-1a, 64 bits. Source: Fowler, Noll, Vo; constants as in draft-eastlake-fnv.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace

std::string digest_of(std::span<const Plan> plans) {
  std::vector<Plan> bare(plans.begin(), plans.end());
  for (Plan& plan : bare) {
    plan.job.clear();
    plan.parameters.clear();
    for (PlanShard& shard : plan.shards) shard.parameter = 0, shard.offset = {0};
    for (Op& op : plan.ops) op.duration = {0};
  }
  // What is hashed is the text as version 2 of the format had it, so that runs measured then still name their plans.
  std::string text = to_json(bare);
  const std::string now = fmt::format("\"version\": {}", kPlanJsonVersion);
  text.replace(text.find(now), now.size(), "\"version\": 2");
  return fmt::format("{:016x}", hash_of(text));
}

namespace {

LiveMeter live_of(const Plan& plan) {
  LiveMeter meter(initial_device_bytes(plan));
  for (const Op& op : plan.ops) {
    meter.enter(op.phase);
    if (op.kind != OpKind::allocate && op.kind != OpKind::release) continue;
    const Buffer& buffer = plan.buffers[op.buffer.index];
    if (buffer.memory == Memory::device) meter.change(buffer.bytes * (op.kind == OpKind::allocate ? 1 : -1));
  }
  return meter;
}

}  // namespace

RankTimeline rank_timeline(const Plan& plan, const Timeline& timeline) {
  const StepSummary summary = summarize(plan, timeline);
  RankTimeline rank;
  rank.rank = plan.rank;
  rank.ops.reserve(plan.ops.size());
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    rank.ops.push_back({.kind = op.kind,
                        .phase = op.phase,
                        .work = op.work,
                        .stream = plan.streams[op.stream.index].kind,
                        .chunk = op.chunk,
                        .calls = op.calls,
                        .members = op.members,
                        .domains = op.domains,
                        .bytes = op.bytes,
                        .start = timeline.start[i],
                        .end = timeline.end[i]});
  }
  Ticks update{0};
  for (const PhaseSummary& phase : summary.phases)
    if (phase.phase == Phase::step) update = phase.duration;
  rank.steps = {summary.total};
  rank.updates = {update};
  const LiveMeter live = live_of(plan);
  rank.memory.live_peak = live.peak();
  rank.memory.live_by_phase = live.by_phase();
  rank.memory.pinned = summary.pinned;
  rank.memory.pageable = summary.pageable;
  return rank;
}

std::string to_json(const TimelineFile& file) {
  Json provenance = Json::array();
  for (const auto& [name, value] : file.provenance) provenance.push_back({name, value});
  std::string text = fmt::format("{{\n\"format\": \"ebb-timeline\",\n\"version\": {},\n", kTimelineJsonVersion);
  text += fmt::format("\"source\": \"{}\",\n\"job\": {},\n", name_of(file.source), dump(file.job));
  text += fmt::format("\"candidate\": {},\n", dump(candidate_json(file.candidate)));
  text += fmt::format("\"plan_digest\": {},\n", dump(file.plan_digest));
  text += fmt::format("\"cluster\": {},\n", dump(file.cluster));
  text += fmt::format("\"provenance\": {},\n\"ranks\": [", dump(provenance));
  for (std::size_t i = 0; i < file.ranks.size(); ++i) text += (i == 0 ? "\n" : ",\n") + rank_text(file.ranks[i]);
  return text + "]\n}\n";
}

TimelineFile timeline_file_from_json(std::string_view text, const std::string& file) {
  const Json json = parse_json(text, file);
  const JsonValue document(json, "", file);
  check_header(document, "ebb-timeline", kTimelineJsonVersion);
  document.require_keys(
      {"format", "version", "source", "job", "candidate", "plan_digest", "cluster", "provenance", "ranks"});
  TimelineFile out;
  out.source = document.at("source").one_of<TimelineSource>(2);
  out.job = document.at("job").text();
  out.candidate = read_candidate(document.at("candidate"));
  out.plan_digest = read_digest(document.at("plan_digest"));
  out.cluster = document.at("cluster").text();
  out.provenance = read_provenance(document.at("provenance"));
  const JsonValue ranks = document.at("ranks");
  if (ranks.size() == 0) ranks.reject("no timeline in it");
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    out.ranks.push_back(read_rank(ranks[i], out.source));
    if (i > 0 && out.ranks[i].rank <= out.ranks[i - 1].rank) ranks[i].reject("ranks are not ascending");
  }
  return out;
}

}  // namespace ebb
