// The directory that holds checkpoints: which names mean what, which checkpoints there are, and how old ones and the
// leftovers of killed saves go.
//
//   step-00000120           a checkpoint; the one of the highest step is the newest
//   step-00000120.partial   one that is being written or removed, or was when its process died
//   step-00000120.old       the checkpoint that a save of the same step replaces, where the file system cannot exchange
//                           two names at once; counts while there is no step-00000120
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "replay/checkpoint/checkpoint.hpp"

namespace ebb::replay::checkpoint {

inline constexpr const char* kManifest = "manifest.json";

std::string step_path(const std::string& directory, std::int64_t step);
std::string partial_path(const std::string& directory, std::int64_t step);

/// The step in the name of a checkpoint's directory; nothing where it is called something else, as who copies it may.
std::optional<std::int64_t> step_of_name(const std::string& path);

/// Removes what saves that died have left, but `step`'s and what another save has locked. Best effort: a leftover that
/// cannot go is no reason to lose a save.
void remove_leftovers(const std::string& directory, std::int64_t step);
/// Gives the finished `partial` its name, durably, whether or not there is such a checkpoint already.
void publish(const std::string& directory, std::int64_t step);
/// All but the newest `keep` and `step`'s. At no moment does half a checkpoint have a checkpoint's name.
void remove_old(const std::string& directory, std::int64_t step, std::size_t keep);

}  // namespace ebb::replay::checkpoint
