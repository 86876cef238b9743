// What the JSON of plans and of timelines have in common: limits, the head of a document, candidates, one line an item.
// For plan_json_*.cpp, timeline_file.cpp and the schemas of both alone.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "models/json_fields.hpp"
#include "models/plan.hpp"

namespace ebb::json_parts {

inline constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t kMost32 = std::numeric_limits<std::uint32_t>::max();

inline constexpr int kStreamKinds = static_cast<int>(StreamKind::comm) + 1;
inline constexpr int kOpKinds = static_cast<int>(OpKind::host_wait) + 1;
inline constexpr int kWorks = static_cast<int>(Work::fetch) + 1;
inline constexpr int kRoles = static_cast<int>(Role::largest) + 1;
inline constexpr int kMemories = static_cast<int>(Memory::pageable) + 1;

inline constexpr std::pair<const char*, std::uint8_t> kStates[] = {
    {"exp_avg", kExpAvg}, {"exp_avg_sq", kExpAvgSq}, {"master", kMaster}, {"grads", kGrads}, {"params", kParams}};

/// `"key": [` one element a line `]`.
template <class Items, class ToJson>
std::string lines(const char* key, const Items& items, const ToJson& to) {
  std::string text = fmt::format("\"{}\": [", key);
  for (std::size_t i = 0; i < items.size(); ++i) text += (i == 0 ? "\n" : ",\n") + dump(to(items[i]));
  return text + (items.empty() ? "]" : "\n]");
}

Json candidate_json(const Candidate& candidate);
Candidate read_candidate(const JsonValue& json);

/// InputError unless the document says that it is `format` in `version`.
void check_header(const JsonValue& document, const char* format, int version);

/// Optional integer fields keep their neutral value when absent.
template <class Int>
void read_integer(const JsonValue& json, const char* key, Int& out, std::int64_t least, std::int64_t most) {
  if (json.has(key)) out = static_cast<Int>(json.at(key).integer(least, most));
}

}  // namespace ebb::json_parts
