// Largest values: whether a quantisation knows those of every element that its scales are made for. One that was left
// out shows in the numbers only where it held a tensor's maximum, so it is demanded of the plan itself.
//
// Demanded of every quantise op, for each parameter whose scales it makes and in the present life of its buffer of
// role largest:
//   zeroed    the buffer was zeroed before anything was collected into it
//   measured  find_largest ops that have ended before it cover all elements of the parameter that the rank owns
//   reduced   where other ranks own the rest: their maximum over ranks lies between those ops and the quantisation
// Not here: whether the masters measured are the stepped ones (planner/verify), and which bytes
// (program_quantized.cpp).
#pragma once

#include <string>

#include "replay/program.hpp"

namespace ebb::replay {

/// InputError that names the op and the parameter. Precondition: the program's actions are complete.
void check_largest(const Program& program, const std::string& file);

}  // namespace ebb::replay
