// How every JSON answer begins: which document it is, and in which version.
//
// The version of a document grows when a key goes, gets another name, or changes its meaning, type or unit. Keys may be
// added without that: readers ignore those that they do not know. `ebb schema answer-NAME` describes the document whose
// `format` is "ebb-answer-NAME".
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace ebb::reports {

/// Of all answers, until one of them needs another.
inline constexpr int kAnswerVersion = 1;

inline nlohmann::ordered_json answer_head(std::string_view name) {
  return {{"format", "ebb-answer-" + std::string(name)}, {"version", kAnswerVersion}};
}

}  // namespace ebb::reports
