#include "models/plan_json_parts.hpp"

namespace ebb::json_parts {

Json candidate_json(const Candidate& candidate) {
  Json json = {{"policy", name_of(candidate.policy)},
               {"chunk_numel", candidate.chunk_numel.value},
               {"chunk_size_mb", candidate.chunk_size_mb},
               {"fraction", candidate.fraction},
               {"slots", candidate.slots}};
  if (candidate.cap.value > 0) json["cap"] = candidate.cap.value;
  return json;
}

Candidate read_candidate(const JsonValue& json) {
  json.require_keys({"policy", "chunk_numel", "chunk_size_mb", "fraction", "slots", "cap"});
  Candidate candidate;
  candidate.policy = json.at("policy").one_of<Policy>(static_cast<int>(kPolicies.size()));
  candidate.chunk_numel = {json.at("chunk_numel").integer(0, kMost)};
  candidate.chunk_size_mb = json.at("chunk_size_mb").integer(0, kMost >> 20);
  candidate.fraction = json.at("fraction").number();
  if (!(candidate.fraction > 0 && candidate.fraction <= 1)) json.at("fraction").reject("not in (0, 1]");
  candidate.slots = static_cast<int>(json.at("slots").integer(0, 1 << 20));
  if (json.has("cap")) candidate.cap = {json.at("cap").integer(0, kMost)};
  return candidate;
}

void check_header(const JsonValue& document, const char* format, int version) {
  if (document.at("format").text() != format) document.at("format").reject(fmt::format("this is not an {}", format));
  const std::int64_t found = document.at("version").integer(0, kMost);
  if (found != version)
    document.at("version").reject(fmt::format("version {} is not read, only {}", found, version),
                                  "write it again with this ebb");
}

}  // namespace ebb::json_parts
