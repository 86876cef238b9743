#include "reports/learned_json.hpp"

#include <nlohmann/json.hpp>

#include "reports/answer_head.hpp"

namespace ebb::reports {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const LearnedRank& rank) {
  return {{"rank", rank.rank},
          {"after_iterations", rank.iterations},
          {"allocated_bytes", rank.allocated.value},
          {"predicted_allocated_bytes", rank.predicted_allocated.value},
          {"peak_bytes", rank.peak.value},
          {"predicted_peak_bytes", rank.predicted_peak.value}};
}

}  // namespace

std::string to_json(const LearnReport& report) {
  Json json = answer_head("learn");
  json["job"] = report.job;
  json["log"] = report.log;
  json["policy"] = report.policy;
  json["offload"] = report.offload;
  json["policy_from"] = report.policy_from;
  json["iteration_seconds"] = report.iteration.value;
  json["iteration_deviation_seconds"] = report.deviation.value;
  json["lines"] = report.lines;
  json["lines_used"] = report.used;
  json["lines_left_out"] = {{"first", report.left_out.first},
                            {"skipped", report.left_out.skipped},
                            {"other_batch", report.left_out.other_batch},
                            {"after_pause", report.left_out.after_pause},
                            {"outliers", report.left_out.outliers}};
  json["step_seconds"] = report.step_seconds.value;
  json["optimizer_predicted_seconds"] = report.optimizer_predicted.value;
  json["optimizer_logged_seconds"] = report.optimizer_logged ? Json(report.optimizer_logged->value) : Json(nullptr);
  json["ranks"] = Json::array();
  for (const LearnedRank& rank : report.ranks) json["ranks"].push_back(to_json(rank));
  json["memory_lines_left_out"] = report.memory_left_out;
  json["resident_remainder_bytes"] = report.resident_remainder.value;
  json["peak_remainder_bytes"] = report.peak_remainder.value;
  json["theoretical_state_bytes"] = report.theoretical_state ? Json(report.theoretical_state->value) : Json(nullptr);
  json["assumed"] = report.assumed;
  json["warnings"] = report.warnings;
  json["job_file"] = report.job_file.empty() ? Json(nullptr) : Json(report.job_file);
  json["job_yaml"] = report.job_text;
  json["ebb_version"] = report.ebb_version;
  // Names of files may hold bytes that are not UTF-8: they become the replacement character.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ebb::reports
