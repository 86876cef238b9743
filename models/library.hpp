// The library of models, clusters and jobs that comes with Ebb, and the rule that turns what a user writes ("a name,
// a path, or in place") into a file.
//
// The library is the directory named by the environment variable EBB_LIBRARY, else ../share/ebb beside the running
// program (an installed one, wherever it was moved to), else the source tree that it was built from, else where it was
// to be installed. Inside it: llm/, clusters/ and jobs/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "models/errors.hpp"

namespace ebb {

enum class Library : std::uint8_t { models, clusters, jobs };

/// "model", "cluster" or "job".
std::string_view name_of(Library kind);

/// Names (file names without .yaml), sorted. Empty when there is no library.
std::vector<std::string> library_names(Library kind);

/// Where `name` is or would be in the library; it need not exist.
std::filesystem::path library_path(Library kind, std::string_view name);

/// The file that `reference` means: a path when it has a separator or an extension (relative to `directory`),
/// otherwise a library name. InputError at `place` when there is no such file, with the nearest name, or when a cluster
/// or a job is a .json.
std::filesystem::path resolve(Library kind, std::string_view reference, const std::filesystem::path& directory,
                              const Place& place);

}  // namespace ebb
