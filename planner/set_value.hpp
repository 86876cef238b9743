// `--set KEY=VALUE`: what a job says, changed in its YAML before it is read, so that every rule and message applies and
// names the setting as its place. Not here: ranges of values (sweep.hpp), and reading a job (models/job_yaml.hpp).
//
// KEY is the dotted path of a job file: parallel.tensor, batch.sequence, compute.step_seconds. Below `cluster` and
// `model`, which a job mostly names only, the named file takes the name's place first: model.layers,
// cluster.host_link.h2d. A cluster's blocks need no `cluster.` before them, and `link` is host_link: link.h2d=26GB/s. A
// figure of a cluster needs a source: it becomes "report: --set".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/yaml_tree.hpp"

namespace ebb {

/// The source of a figure that a setting gives.
inline constexpr const char* kSetSource = "report: --set";

struct Setting {
  std::vector<std::string> path;  // of keys, `link` and a cluster's blocks written out
  std::string value;
  std::string text;  // as the user gave it

  Place place() const { return {"--set " + text}; }
  /// Dotted, as the user gave it.
  std::string key() const { return text.substr(0, text.find('=')); }
};

/// InputError for anything but KEY=VALUE.
Setting parse_setting(const std::string& text);
std::vector<Setting> parse_settings(std::span<const std::string> texts);

/// Into the tree of a job file that stands at `file`. InputError where a path leads through a single value, or where a
/// model or cluster to be changed cannot be found. Whether keys are known and values make sense, reading the job says.
///
/// A link that is set slower than its two directions together takes that sum down with it.
void apply_settings(std::span<const Setting> settings, const std::string& file, YamlNode& root);

}  // namespace ebb
