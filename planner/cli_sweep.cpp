// `ebb sweep JOB --set KEY=V1,V2`: one answer for every combination of values.
#include "models/errors.hpp"
#include "planner/cli.hpp"

namespace ebb::cli {

int run_sweep(const SweepOptions&) { throw InputError(Place{}, "not built yet", "see ebb --help"); }

}  // namespace ebb::cli
