// The blocks of run_settings.hpp from and to YAML; the rest of a job is job_yaml's.
#pragma once

#include "models/job.hpp"
#include "models/yaml_fields.hpp"
#include "models/yaml_writer.hpp"

namespace ebb {

/// The keys of a job file that are read here.
inline constexpr std::string_view kRunSettingKeys[] = {"optimizer", "activations", "experts", "checkpoint", "megatron"};

/// Blocks that are there. InputError as YamlFields says.
void read_run_settings(const YamlFields& job_fields, Job& job);

/// Blocks that differ from their defaults.
void write_run_settings(const Job& job, YamlWriter& writer);

}  // namespace ebb
