// `ebb score`. Not written yet.
#include "models/errors.hpp"
#include "planner/cli.hpp"

namespace ebb::cli {

int run_score(const ScoreOptions& /*options*/) { throw InputError(Place{}, "score is not written yet", ""); }

}  // namespace ebb::cli
