// Members of what `ebb fit`, `ebb sweep` and `ebb explain` print, as far as a page shows them.
#include "planner/document_fields.hpp"

namespace ebb::cli {

void read(const JsonValue& json, reports::FitPoint& point) {
  Fields(json).key("value", point.value).key("candidate", point.candidate).key("obstacle", point.obstacle);
}

void read(const JsonValue& json, reports::FitLimit& limit) {
  Fields(json).key("offload", limit.offload).key("fits", limit.fits).key("breaks", limit.breaks);
}

void read(const JsonValue& json, reports::SweepRow& row) {
  Fields(json)
      .key("values", row.values)
      .key("candidate", row.candidate)
      .key("fits", row.fits)
      .key("obstacle", row.obstacle);
}

void read(const JsonValue& json, reports::PathSegment& s) {
  Fields(json)
      .key("phase", s.phase)
      .key("what", s.what)
      .key("stream", s.stream)
      .key("waited_for", s.waited_for)
      .key("operations", s.operations)
      .key("seconds", s.time)
      .key("percent", s.percent);
}

void read(const JsonValue& json, reports::Bottleneck& b) {
  Fields(json).key("resource", b.resource).key("seconds", b.time).key("sentence", b.sentence);
}

void read(const JsonValue& json, reports::LowerBound& b) {
  Fields(json).key("name", b.name).key("seconds", b.time).key("origin", b.origin);
}

void read(const JsonValue& json, reports::MemoryBound& b) {
  Fields(json).key("least_bytes", b.least).key("peak_bytes", b.peak).key("rank", b.rank);
}

void read(const JsonValue& json, reports::Neighbour& n) {
  Fields(json).key("change", n.change).key("verdict", n.verdict).key("candidate", n.candidate);
}

void read(const JsonValue& json, reports::ShardLimit::Lever& lever) {
  Fields(json).key("argument", lever.argument).key("largest_numel", lever.largest);
}

void read(const JsonValue& json, reports::ShardLimit& s) {
  Fields(json)
      .key("parameter", s.parameter)
      .key("rank", s.rank)
      .key("largest_numel", s.largest)
      .key("window_bytes", s.window)
      .key("chunk", s.chunk)
      .key("decides", s.decides)
      .key("cut", s.cut)
      .key("explanation", s.explanation)
      .key("levers", s.levers)
      .key("without_effect", s.without_effect);
}

void read(const JsonValue& json, reports::WhatIf& w) {
  Fields(json)
      .key("change", w.change)
      .key("recommendation", w.recommendation)
      .key("flags", w.flags)
      .key("differs", w.differs)
      .key("step_seconds", w.step)
      .key("device_reserved_bytes", w.needs)
      .key("note", w.note);
}

void read(const JsonValue& json, reports::Explanation& e) {
  Fields(json)
      .key("rank", e.rank)
      .key("step_seconds", e.step)
      .key("segments", e.segments)
      .key("path_operations", e.path_operations)
      .key("bottleneck", e.bottleneck)
      .key("optimizer_seconds", e.optimizer)
      .key("bounds", e.bounds)
      .key("memory", e.memory)
      .key("neighbours", e.neighbours)
      .key("shard", e.shard)
      .key("what_ifs", e.what_ifs)
      .difference("added_seconds", e.added);
}

}  // namespace ebb::cli
