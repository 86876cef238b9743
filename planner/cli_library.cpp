// `ebb models|clusters|policies list|show NAME`: what the library holds, or a file like it.
#include <filesystem>

#include "models/cluster_yaml.hpp"
#include "models/library.hpp"
#include "models/model_yaml.hpp"
#include "planner/cli.hpp"
#include "planner/cli_output.hpp"
#include "planner/library_facts.hpp"

namespace ebb::cli {

namespace {

reports::LibraryEntry entry_of(const std::string& kind, const std::string& name) {
  if (kind == "policies") return facts_of(parse_policy(name, Place{}));
  const std::filesystem::path here = std::filesystem::current_path();
  if (kind == "models") return facts_of(load_model(resolve(Library::models, name, here, Place{})));
  return facts_of(load_cluster(resolve(Library::clusters, name, here, Place{})));
}

std::vector<std::string> names_of(const std::string& kind) {
  if (kind == "models") return library_names(Library::models);
  if (kind == "clusters") return library_names(Library::clusters);
  std::vector<std::string> names;
  for (const Policy policy : kPolicies) names.emplace_back(name_of(policy));
  return names;
}

std::vector<reports::FactColumn> columns_of(const std::string& kind) {
  using reports::Align;
  if (kind == "models")
    return {{"parameters", "parameters"}, {"layers", "layers"}, {"hidden", "hidden"}, {"kind", "kind", Align::left}};
  if (kind == "clusters")
    return {{"gpus_per_host", "GPUs"},    {"gpu.memory", "memory"},       {"host_link.h2d", "to device"},
            {"host_link.d2h", "to host"}, {"host.memory", "host memory"}, {"measured_figures", "measured"}};
  return {{"requires", "requires", Align::left}, {"moves", "moves", Align::left}};
}

}  // namespace

int run_library(const LibraryOptions& options) {
  reports::LibraryReport report;
  report.kind = options.kind;
  report.columns = columns_of(options.kind);
  report.whole = options.name.has_value();
  report.ebb_version = EBB_VERSION;
  if (options.name)
    report.entries.push_back(entry_of(options.kind, *options.name));
  else
    for (const std::string& name : names_of(options.kind)) report.entries.push_back(entry_of(options.kind, name));
  write_stdout(options.json ? reports::to_json(report) : reports::to_text(report, reports::style_of(1)));
  return 0;
}

}  // namespace ebb::cli
