// `ebb learn LOG JOB`: a job with the figures of its own training log.
#include "models/errors.hpp"
#include "planner/cli.hpp"

namespace ebb::cli {

int run_learn(const LearnOptions&) { throw InputError(Place{}, "not built yet", "see ebb --help"); }

}  // namespace ebb::cli
