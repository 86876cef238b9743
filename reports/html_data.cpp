// The data behind the drawings. Spans are columns, lane by lane: the distance from the start before (on the same lane)
// and the length in whole units of time, a unit being the smallest power of ten from a nanosecond on that lets both
// fit 32 bits. That rounds a span's edges by half a unit at most, and deflates to a fraction of the same in JSON.
#include <algorithm>
#include <limits>

#include "reports/answer_json_parts.hpp"
#include "reports/html_blob.hpp"
#include "reports/html_parts.hpp"

namespace ebb::reports {

namespace {

Json json_of(const HtmlBlob::Column& column) { return Json::array({column.at, column.count}); }

/// Ticks a unit.
std::int64_t unit_of(const HtmlTimeline& timeline) {
  Ticks end = timeline.step;
  for (const HtmlSpan& span : timeline.spans) end = std::max(end, span.end);
  std::int64_t unit = 1'000;
  while (end.value / unit >= std::numeric_limits<std::uint32_t>::max()) unit *= 10;
  return unit;
}

std::int64_t in_units(Ticks ticks, std::int64_t unit) { return (ticks.value + unit / 2) / unit; }

bool same_lane(const HtmlSpan& a, const HtmlSpan& b) { return a.stream == b.stream && a.lane == b.lane; }

/// One entry a lane: stream, lane of the stream, first span, spans.
Json lanes_of(const std::vector<HtmlSpan>& spans) {
  Json lanes = Json::array();
  for (std::size_t begin = 0; begin < spans.size();) {
    std::size_t end = begin;
    while (end < spans.size() && same_lane(spans[begin], spans[end])) ++end;
    lanes.push_back({{"stream", name_of(spans[begin].stream)},
                     {"lane", spans[begin].lane},
                     {"begin", begin},
                     {"count", end - begin}});
    begin = end;
  }
  return lanes;
}

Json columns_of(const std::vector<HtmlSpan>& spans, std::int64_t unit, HtmlBlob& blob) {
  std::vector<std::uint32_t> starts, lengths, ops, joined, chunks;
  std::vector<std::uint8_t> kinds, phases;
  std::vector<double> bytes;
  const auto u32 = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  std::uint32_t op_before = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const HtmlSpan& span = spans[i];
    const bool first = i == 0 || !same_lane(spans[i - 1], span);
    const std::int64_t start = in_units(span.start, unit);
    starts.push_back(u32(start - (first ? 0 : in_units(spans[i - 1].start, unit))));
    lengths.push_back(u32(in_units(span.end, unit) - start));
    ops.push_back(span.op - op_before);  // modulo 2^32
    op_before = span.op;
    joined.push_back(span.ops);
    chunks.push_back(u32(span.chunk + 1));  // 0: none
    kinds.push_back(span.kind);
    phases.push_back(span.phase);
    bytes.push_back(static_cast<double>(span.bytes.value));
  }
  return {{"start", json_of(blob.add(starts))}, {"length", json_of(blob.add(lengths))},
          {"op", json_of(blob.add(ops))},       {"ops", json_of(blob.add(joined))},
          {"chunk", json_of(blob.add(chunks))}, {"kind", json_of(blob.add(kinds))},
          {"phase", json_of(blob.add(phases))}, {"bytes", json_of(blob.add(bytes))}};
}

Json json_of(const std::vector<HtmlLevel>& levels, HtmlBlob& blob) {
  std::vector<double> at, bytes;
  for (const HtmlLevel& level : levels) {
    at.push_back(to_seconds(level.at).value);
    bytes.push_back(static_cast<double>(level.bytes.value));
  }
  return {{"at", json_of(blob.add(at))}, {"bytes", json_of(blob.add(bytes))}};
}

Json json_of(const std::optional<HtmlTimeline>& timeline, HtmlBlob& blob) {
  if (!timeline) return nullptr;
  const std::int64_t unit = unit_of(*timeline);
  Json json;
  json["origin"] = timeline->origin;
  json["rank"] = timeline->rank;
  json["ranks"] = timeline->ranks;
  json["step_seconds"] = to_seconds(timeline->step).value;
  json["unit_seconds"] = to_seconds(Ticks{unit}).value;
  json["ops"] = timeline->ops;
  json["kinds"] = Json::array();
  for (const HtmlKind& kind : timeline->kinds)
    json["kinds"].push_back({{"name", kind.name}, {"family", name_of(kind.family)}});
  json["phases"] = timeline->phases;
  json["lanes"] = lanes_of(timeline->spans);
  json["columns"] = columns_of(timeline->spans, unit, blob);
  json["by_phase"] = timeline->by_phase;
  json["device"] = json_of(timeline->device, blob);
  json["pinned"] = json_of(timeline->pinned, blob);
  json["pageable"] = json_of(timeline->pageable, blob);
  return json;
}

Json json_of(const Curve& curve, HtmlBlob& blob) {
  if (curve.points.empty()) return nullptr;
  std::vector<double> at, bytes;
  for (const CurvePoint& point : curve.points) {
    at.push_back(point.at.value);
    bytes.push_back(static_cast<double>(point.bytes.value));
  }
  return {{"rank", curve.rank}, {"at", json_of(blob.add(at))}, {"bytes", json_of(blob.add(bytes))}};
}

Json json_of(const HtmlCandidate& candidate, HtmlBlob& blob) {
  const Candidate& c = candidate.answer;
  Json json;
  json["label"] = label_of(c);
  json["policy"] = c.policy;
  json["need_bytes"] = candidate.known ? Json(c.device_reserved.value) : Json(nullptr);
  json["step_seconds"] = candidate.known ? Json(c.step.value) : Json(nullptr);
  json["feasible"] = c.feasible;
  json["deployable"] = c.deployable;
  json["front"] = candidate.on_front;
  json["curve"] = json_of(candidate.curve, blob);
  json["predicted"] = json_of(candidate.predicted, blob);
  json["measured"] = json_of(candidate.measured, blob);
  return json;
}

Json json_of(const std::optional<BytesPerSecond>& rate) { return rate ? Json(rate->value) : Json(nullptr); }

Json json_of(const HtmlJob& job, HtmlBlob& blob) {
  Json json;
  json["name"] = job.header.job;
  json["device_budget_bytes"] = job.header.device_budget.value;
  json["host_budget_bytes"] = job.header.host_budget.value;
  json["gpus_per_host"] = job.header.gpus_per_host;
  json["link_in"] = json_of(job.link_in);
  json["link_out"] = json_of(job.link_out);
  json["recommended"] = job.recommended ? Json(*job.recommended) : Json(nullptr);
  json["selected"] = job.selected;
  json["candidates"] = Json::array();
  for (const HtmlCandidate& candidate : job.candidates) json["candidates"].push_back(json_of(candidate, blob));
  return json;
}

}  // namespace

HtmlData data_of(const HtmlReport& report) {
  HtmlBlob blob;
  Json json;
  json["jobs"] = Json::array();
  for (const HtmlJob& job : report.jobs) json["jobs"].push_back(json_of(job, blob));
  return {json_in_html(json.dump(-1, ' ', false, Json::error_handler_t::replace)), blob.deflated()};
}

}  // namespace ebb::reports
