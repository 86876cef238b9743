// A Cluster as a YAML file of its own, as the library's are written by hand: comments on top, then a line a figure.
//
// Beside write_cluster (cluster_yaml.hpp), which nests every figure over three lines because it writes clusters into
// jobs. Both read back to an equal Cluster; figures that still have their default are left out.
#pragma once

#include <span>
#include <string>

#include "models/cluster.hpp"

namespace ebb {

/// `comments`: one line each, without "# " and line breaks.
std::string cluster_file_text(const Cluster& cluster, std::span<const std::string> comments);

}  // namespace ebb
