// What several JSON documents have in common. Internal to the writers.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/answer.hpp"
#include "reports/answer_head.hpp"

namespace ebb::reports {

using Json = nlohmann::ordered_json;

Json json_of(const std::vector<NamedBytes>& terms);
Json json_of(const Candidate& candidate);
/// `with_terms`: what is alive at the peak, too.
Json json_of(const std::vector<Phase>& phases, bool with_terms);
void append(Json& json, const Header& header);
/// Text from a user's file may hold bytes that are not UTF-8 (a file name): they become the replacement character.
std::string finish(const Json& json);

}  // namespace ebb::reports
