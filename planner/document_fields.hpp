// What commands print with --json, read back into the plain data that it was written from. Fields lists the keys of a
// struct beside its members; what a figure may be depends on its type alone: sizes, counts and times are at least 0 and
// no larger than anything that a cluster holds or a job takes. Keys that a struct does not list are passed over.
//
// Not here: which document a file is (html_documents.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/json_fields.hpp"
#include "models/units.hpp"
#include "reports/answer.hpp"
#include "reports/diff.hpp"
#include "reports/explain.hpp"
#include "reports/fit.hpp"
#include "reports/sweep.hpp"

namespace ebb::cli {

// Single values. InputError, with the path in the document, for another type or a figure out of bounds.
void read(const JsonValue& json, std::string& text);
void read(const JsonValue& json, bool& word);
void read(const JsonValue& json, int& count);
void read(const JsonValue& json, std::int64_t& count);
void read(const JsonValue& json, std::size_t& count);
void read(const JsonValue& json, double& number);
void read(const JsonValue& json, Bytes& bytes);
void read(const JsonValue& json, Numel& numel);
void read(const JsonValue& json, Seconds& seconds);
void read(const JsonValue& json, BytesPerSecond& rate);

// What several documents hold.
void read(const JsonValue& json, reports::NamedBytes& named);
void read(const JsonValue& json, reports::Candidate& candidate);
void read(const JsonValue& json, reports::Header& header);
void read(const JsonValue& json, reports::PeakTerm& term);
void read(const JsonValue& json, reports::Phase& phase);

// Of `ebb diff`.
void read(const JsonValue& json, std::pair<std::string, std::string>& named);
void read(const JsonValue& json, std::pair<std::string, Bytes>& named);
void read(const JsonValue& json, reports::DiffTime& time);
void read(const JsonValue& json, reports::DiffPhase& phase);
void read(const JsonValue& json, reports::DiffClass& kind);
void read(const JsonValue& json, reports::DiffBytes& bytes);
void read(const JsonValue& json, reports::DiffMemory& memory);
void read(const JsonValue& json, reports::DiffRank& rank);

// Of `ebb fit`, `ebb sweep` and `ebb explain`.
void read(const JsonValue& json, reports::FitPoint& point);
void read(const JsonValue& json, reports::FitLimit& limit);
void read(const JsonValue& json, reports::SweepRow& row);
void read(const JsonValue& json, reports::PathSegment& segment);
void read(const JsonValue& json, reports::Bottleneck& bottleneck);
void read(const JsonValue& json, reports::LowerBound& bound);
void read(const JsonValue& json, reports::MemoryBound& bound);
void read(const JsonValue& json, reports::Neighbour& neighbour);
void read(const JsonValue& json, reports::ShardLimit::Lever& lever);
void read(const JsonValue& json, reports::ShardLimit& shard);
void read(const JsonValue& json, reports::WhatIf& what_if);
void read(const JsonValue& json, reports::Explanation& explanation);

/// null is nothing.
template <class Value>
void read(const JsonValue& json, std::optional<Value>& value) {
  value.reset();
  if (!json.is_null()) read(json, value.emplace());
}

template <class Value>
void read(const JsonValue& json, std::vector<Value>& values) {
  values.assign(json.size(), Value());
  for (std::size_t i = 0; i < values.size(); ++i) read(json[i], values[i]);
}

/// The keys of an object beside what they are read into: Fields(json).key("name", x.name).key("bytes", x.bytes).
class Fields {
 public:
  explicit Fields(const JsonValue& json) : json_(&json) {}

  template <class Value>
  const Fields& key(const char* name, Value& value) const {
    read(json_->at(name), value);
    return *this;
  }
  /// A key that need not be there.
  template <class Value>
  const Fields& or_nothing(const char* name, Value& value) const {
    return json_->has(name) ? key(name, value) : *this;
  }
  /// A difference of times, which may be below 0.
  const Fields& difference(const char* key, Seconds& seconds) const;

 private:
  const JsonValue* json_;
};

}  // namespace ebb::cli
