// ModelSpec from a Hugging Face config.json. Which architectures: the table in hf_config.cpp. The figures that a model
// of this architecture has but its configuration does not say (a gate, norms of queries) come from the architecture.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "models/model_spec.hpp"

namespace ebb {

struct HfModel {
  ModelSpec model;
  std::int64_t max_positions = 0;         // the longest sequence, 0 where the file does not say
  std::vector<std::string> not_modelled;  // what this model has and a ModelSpec cannot say
};

/// InputError for an architecture that is not known (with the known ones), for missing keys and values out of range.
HfModel read_hf_config(std::string_view text, const std::string& file);
HfModel load_hf_config(const std::filesystem::path& file);

}  // namespace ebb
