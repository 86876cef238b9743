// What a part of a life moves to or from a checkpoint: every element that the rank owns, once.
#pragma once

#include <string>

#include "replay/program.hpp"

namespace ebb::replay {

/// InputError that names the part, the state and the elements: a save must store all state and the parameters, a load
/// must fetch all state (parameters follow from masters where there are some), load_params masters or parameters; each
/// element once. Nothing is asked of other parts.
void check_checkpoint(const Program& program, const std::string& file);

}  // namespace ebb::replay
