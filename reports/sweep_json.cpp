#include "reports/sweep_json.hpp"

#include "reports/answer_json_parts.hpp"

namespace ebb::reports {

std::string to_json(const SweepReport& report) {
  Json json = answer_head("sweep");
  json["job"] = report.job;
  json["keys"] = report.keys;
  json["rows"] = Json::array();
  for (const SweepRow& row : report.rows)
    json["rows"].push_back({{"values", row.values},
                            {"fits", row.fits},
                            {"candidate", row.candidate ? json_of(*row.candidate) : Json(nullptr)},
                            {"obstacle", row.obstacle}});
  json["ebb_version"] = report.ebb_version;
  return finish(json);
}

}  // namespace ebb::reports
