// Megatron-LM's arguments out of the files in which people keep them: a launch script, a plain list of arguments, a
// test-case YAML (MODEL_ARGS, ENV_VARS) or a recipe YAML (ARGS, ENV_VARS).
#pragma once

#include <string>
#include <string_view>

#include "models/yaml_tree.hpp"
#include "planner/megatron_arguments.hpp"

namespace ebb {

/// InputError for what is no such file, with the place; IoError when it cannot be read. GPUs come from
/// --nproc-per-node and --nnodes, else from #SBATCH lines, else from the YAML's own keys; unset where none says.
MegatronArguments read_megatron_file(const std::string& path);

/// The same from text; `file` is for places.
MegatronArguments read_megatron_script(std::string_view text, const std::string& file);
MegatronArguments read_megatron_yaml(const YamlNode& root, const std::string& file);

/// Whether the document holds arguments of Megatron-LM.
bool is_megatron_yaml(const YamlNode& root);

}  // namespace ebb
