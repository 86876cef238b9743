#include "models/schema/schema.hpp"

#include <utility>

#include "models/errors.hpp"
#include "models/schema/schema_parts.hpp"

namespace ebb {

namespace {

constexpr std::pair<std::string_view, std::string (*)()> kSchemas[] = {{"job", schema::job_document},
                                                                       {"model", schema::model_document},
                                                                       {"cluster", schema::cluster_document},
                                                                       {"plan", schema::plan_document},
                                                                       {"timeline", schema::timeline_document}};

}  // namespace

std::vector<std::string_view> file_schema_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, write] : kSchemas) names.push_back(name);
  return names;
}

std::string file_schema(std::string_view name) {
  for (const auto& [known, write] : kSchemas)
    if (known == name) return write();
  EBB_ASSERT(false);
  return "";
}

}  // namespace ebb
