// `ebb fit JOB --max sequence`: how far a job can go before it does not fit.
#include "models/errors.hpp"
#include "planner/cli.hpp"

namespace ebb::cli {

int run_fit(const FitOptions&) { throw InputError(Place{}, "not built yet", "see ebb --help"); }

}  // namespace ebb::cli
