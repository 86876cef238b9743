// ModelSpec from and to YAML (design: "Files a user writes"). Checks what one file can show: types, ranges, and that
// the sizes fit each other. Whether the model fits a job's parallel sizes is planner/constraints' question.
#pragma once

#include <filesystem>
#include <string>

#include "models/model_spec.hpp"
#include "models/yaml_tree.hpp"
#include "models/yaml_writer.hpp"

namespace ebb {

/// InputError names the place and the cure. `name` is the model's unless the file says `name:`; `path` is the
/// mapping's dotted name in its file ("" for a file of its own, "model" inside a job).
ModelSpec read_model(const YamlNode& node, const std::string& name, const std::string& path = "");

/// InputError at `place` for a model far larger than any real one: sums of its bytes and elements would leave int64.
void check_model_size(const ModelSpec& model, const Place& place);

/// `moe` with these layers ('1' MoE, '0' dense; at least one is MoE): as first_dense_layers and layer_freq where they
/// can say it, else as layer_pattern.
MoeSpec with_layers(MoeSpec moe, const std::string& pattern);

/// A model YAML, or a Hugging Face config.json.
ModelSpec load_model(const std::filesystem::path& file);

/// Every key, so that the text does not depend on defaults; reads back to an equal ModelSpec.
std::string write_model(const ModelSpec& model);
void write_model(const ModelSpec& model, YamlWriter& writer);

}  // namespace ebb
