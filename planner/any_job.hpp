// A job from any form in which one is kept: Ebb's own job file or a job of the library, Megatron-LM's arguments (a
// launch script, an argument list, a test-case or recipe YAML), or a Hugging Face config.json.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "planner/megatron_arguments.hpp"
#include "planner/set_value.hpp"

namespace ebb {

/// What the other forms do not say. A job file says it itself.
struct ImportChoices {
  std::string cluster = "hgx-h100";  // a name of the library or a path
  Place cluster_place{};
  std::optional<std::int64_t> gpus;  // where given, they replace the file's
  std::string gpus_cure = "give --gpus";
};

/// InputError names file, place and cure; IoError when the file cannot be read.
ImportedJob import_megatron(const std::string& file, const ImportChoices& choices);

/// The model is the file's; sizes and batch are Ebb's choice, each with a note.
ImportedJob import_hf(const std::string& file, const ImportChoices& choices);

/// Whatever `file` is; the notes are empty for a job file. `settings` change the job before it is read.
ImportedJob load_any_job(const std::string& file, std::span<const Setting> settings = {});

/// A job file for `imported` with its notes as comments. `cluster` as the user named it; it is written in place unless
/// it is a name of the library.
std::string write_imported(const ImportedJob& imported, const std::string& cluster);

}  // namespace ebb
