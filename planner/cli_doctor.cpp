// `ebb doctor [JOB]`: this machine, and what it means for a plan.
#include "models/errors.hpp"
#include "planner/cli.hpp"

namespace ebb::cli {

int run_doctor(const DoctorOptions&) { throw InputError(Place{}, "not built yet", "see ebb --help"); }

}  // namespace ebb::cli
