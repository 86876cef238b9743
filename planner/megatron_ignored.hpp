// Megatron-LM's arguments that change no answer of Ebb: neither the memory nor the time of a training step.
#pragma once

#include <string_view>
#include <vector>

namespace ebb {

const std::vector<std::string_view>& ignored_arguments();

/// One of the above, or of a family by its first word (logging, RL, inference, ...).
bool is_ignored_argument(std::string_view name);

}  // namespace ebb
