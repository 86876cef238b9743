// `ebb explain`. Not written yet.
#include "models/errors.hpp"
#include "planner/cli.hpp"

namespace ebb::cli {

int run_explain(const ExplainOptions& /*options*/) { throw InputError(Place{}, "explain is not written yet", ""); }

}  // namespace ebb::cli
