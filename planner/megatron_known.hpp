// The arguments of Megatron-LM that Ebb knows by name, and what it makes of each: which key of a job it decides, why it
// is not modelled, or that it changes no answer. Not here: their values and defaults (megatron_job.cpp and its parts).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ebb {

enum class ArgumentUse : std::uint8_t { used, not_modelled, ignored };

struct KnownArgument {
  ArgumentUse use = ArgumentUse::ignored;
  std::string_view about;  // used: the job's key, for places ("" none); not_modelled: what is left out
};

/// `name` without dashes in front. A switch and its negation ("no-rope-fusion", "rope-fusion") are two names.
std::optional<KnownArgument> known_argument(std::string_view name);

/// The known name nearest to a misspelled one, or "".
std::string nearest_argument(std::string_view name);

}  // namespace ebb
