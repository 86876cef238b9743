// Cluster from and to YAML. Every figure is `{value: ..., source: ...}`, and the source begins with measured,
// datasheet or report and says which: an answer can then say what it rests on.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/cluster.hpp"
#include "models/yaml_tree.hpp"
#include "models/yaml_writer.hpp"

namespace ebb {

/// As read_model: InputError names the place and the cure; `name` holds unless the file says `name:`; `path` is the
/// mapping's dotted name in its file.
Cluster read_cluster(const YamlNode& node, const std::string& name, const std::string& path = "");

Cluster load_cluster(const std::filesystem::path& file);

/// Reads back to an equal Cluster.
std::string write_cluster(const Cluster& cluster);
void write_cluster(const Cluster& cluster, YamlWriter& writer);

/// Figures that the file left out, each as "host_link.pageable_h2d (default: measured beside H200, ...)".
std::vector<std::string> default_figures(const Cluster& cluster);

}  // namespace ebb
